"""Upstream's list of disabled tests, fetched and imported: shown beside tests, and never a word about others."""

import datetime
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core import alarms, rounds
from apps.core.clock import now
from apps.core.models import Alarm, Round
from apps.platforms.models import Platform
from apps.quarantine import upstream_sync
from apps.quarantine.disabled_list import SILENT_AFTER
from apps.quarantine.models import Quarantine, UpstreamDisabled, UpstreamList, UpstreamWord
from apps.quarantine.tasks import fetch_upstream_list
from apps.quarantine.upstream_words import about
from apps.results.aliases import alias_test
from apps.results.models import Exclusion, PublicTest
from tests.client.recorder import Recorder, Says
from tests.factories.listing import TESTS, listed, user
from tests.factories.pages import Page
from tests.factories.tests import catalogued

pytestmark = pytest.mark.django_db

TASK = "apps.quarantine.tasks.fetch_upstream_list"
ISSUE = "https://github.com/pytorch/pytorch/issues/77"
LIST = {
    "test_a_cuda_float32 (__main__.TestFooCUDA)": ["77", ISSUE, ["rocm"]],
    "test_b (__main__.TestFoo)": ["78", ISSUE, []],
    "test_c (__main__.TestFoo)": ["79", ISSUE, ["npu"]],
    "test_d (__main__.TestFoo)": ["80", ISSUE, ["linux"]],
}


def sent(lines: dict[str, Any], **headers: str) -> Says:
    return http(200, json.dumps(lines).encode(), **headers)


def http(status: int, body: bytes, **headers: str) -> Says:
    return Says(status, body, {"Content-Length": str(len(body)), **headers})


@pytest.fixture
def address(settings: Any) -> Iterator[Recorder]:
    """Where upstream's list lies."""
    alarms.forget()
    recorder = Recorder()
    recorder.start()
    settings.DISABLED_TESTS_URL = f"{recorder.url}/disabled-tests.json"
    yield recorder
    recorder.stop()


def fetched(address: Recorder, *answers: Says, at: datetime.datetime | None = None) -> Round:
    """One round for each answer, as beat would have it; how the last one ended."""
    address.answers = list(answers)
    for _ in answers:
        rounds.start()
        upstream_sync.follow(now=at or now())
        rounds.note(TASK, now=at or now())
    return Round.objects.get(name=TASK)


def disabled() -> list[str]:
    return list(UpstreamDisabled.objects.values_list("said", flat=True))


def events() -> list[tuple[str, str, str, bool]]:
    """Of the list: (action, summary, reason, whether it is a public decision), the first one first."""
    found = [body_of(event) for event in Event.objects.filter(action__startswith="upstream").order_by("seq")]
    return [(body["action"], body["summary"], body["reason"], body["is_decision"]) for body in found]


def in_tree(slug: str, name: str) -> Platform:
    return Platform.objects.create(slug=slug, name=name, kind=Platform.Kind.IN_TREE, created_at=now())


# --- fetching -----------------------------------------------------------------------------------------------------


def test_without_an_address_nothing_is_fetched_and_the_task_says_that_it_is_off() -> None:
    fetch_upstream_list.apply()
    row = Round.objects.get(name=TASK)
    assert (row.is_off, row.succeeded_at, row.said, UpstreamList.objects.count()) == (True, None, "", 0)


def test_what_the_address_answers_is_shown_and_stands_in_the_log(address: Recorder, settings: Any) -> None:
    moment = now()
    row = fetched(address, sent(LIST, ETag='"one"'), at=moment)
    kept = UpstreamList.objects.get()
    assert (kept.source, kept.etag, kept.taken_at, kept.answered_at, kept.alarm) == (
        settings.DISABLED_TESTS_URL,
        '"one"',
        moment,
        moment,
        "",
    )
    assert disabled() == sorted(LIST)
    assert (row.succeeded_at, row.said) == (moment, "")
    assert events() == [
        ("upstreamlist.taken", "Upstream disables 4 tests: 4 new, 0 changed, 0 enabled again", "", False)
    ]
    body = body_of(Event.objects.get(action="upstreamlist.taken"))
    assert (body["actor"]["kind"], body["before"], body["after"]) == (
        "hub",
        {"tests": 0, "sha256": "", "source": ""},
        {
            "tests": 4,
            "sha256": hashlib.sha256(json.dumps(LIST).encode()).hexdigest(),
            "source": settings.DISABLED_TESTS_URL,
            "left_out": 0,
        },
    )
    # It is shown: nothing is put in quarantine by it, and no result is judged by it.
    assert (Quarantine.objects.count(), Exclusion.objects.count()) == (0, 0)


def test_a_copy_that_has_not_changed_is_not_sent_again(address: Recorder) -> None:
    fetched(address, sent(LIST, ETag='"one"'))
    row = fetched(address, http(304, b""))
    assert [asked.headers.get("if-none-match") for asked in address.asked] == [None, '"one"']
    assert (row.said, len(events()), disabled()) == ("", 1, sorted(LIST))


def test_a_newer_list_changes_what_is_different(address: Recorder) -> None:
    fetched(address, sent(LIST))
    keys = dict(UpstreamDisabled.objects.values_list("said", "pk"))
    newer = {key: value for key, value in LIST.items() if not key.startswith("test_d")}
    newer["test_b (__main__.TestFoo)"] = ["78", ISSUE, ["linux"]]
    newer["test_e (__main__.TestFoo)"] = ["81", ISSUE, []]
    fetched(address, sent(newer), sent(newer))
    assert disabled() == sorted(newer)
    changed = UpstreamDisabled.objects.get(said__startswith="test_b")
    assert (changed.pk, changed.words) == (keys["test_b (__main__.TestFoo)"], ["linux"])
    assert [event[1] for event in events()] == [
        "Upstream disables 4 tests: 4 new, 0 changed, 0 enabled again",
        "Upstream disables 4 tests: 1 new, 1 changed, 1 enabled again",
    ]


MANY = {f"test_{number} (__main__.TestA)": ["1", ISSUE, []] for number in range(20)}
REFUSALS: dict[str, tuple[Says, str, str]] = {
    "a web page": (
        http(200, b"<html><body>Sign in"),
        "html",
        "it begins with '<html><body>Sign in'",
    ),
    "nothing": (http(200, b""), "empty", "it has no content"),
    "nobody": (http(200, b"{}"), "empty", "it names no test, 20 are disabled"),
    "no JSON": (http(200, b"no"), "unreadable", "it is no JSON: Expecting value: line 1 column 1 (char 0)"),
    "half of it": (
        http(200, json.dumps(dict(list(MANY.items())[:2])).encode()),
        "shrink",
        "18 of 20 are gone: test_10 (__main__.TestA), test_11 (__main__.TestA), test_12 (__main__.TestA), "
        "test_13 (__main__.TestA), test_14 (__main__.TestA)",
    ),
    "gone": (http(404, b""), "refused", "it answered 404"),
    "elsewhere": (http(302, b"", Location="http://127.0.0.1:1/"), "refused", "it answered 302"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_no_list_keeps_the_last_good_copy_and_alarms_once(address: Recorder, name: str) -> None:
    answer, kind, detail = REFUSALS[name]
    moment = now()
    good = fetched(address, sent(MANY), at=moment)
    later = moment + datetime.timedelta(hours=1)
    row = fetched(address, answer, answer, at=later)
    kept = UpstreamList.objects.get()
    assert (kept.alarm, kept.alarm_detail, kept.alarm_at, len(disabled())) == (kind, detail, later, 20)
    # It ran, and it did not do its work.
    assert (row.succeeded_at, row.tried_at, row.said) == (
        good.succeeded_at,
        later,
        f"the list is not taken: {detail}"[:300],
    )
    assert [event[0] for event in events()] == ["upstreamlist.taken", "upstreamlist.alarm_raised"]
    assert events()[1] == (
        "upstreamlist.alarm_raised",
        f"Upstream's list of disabled tests is not taken ({kept.get_alarm_display()}): the last good copy stays",
        detail,
        False,
    )
    assert Alarm.objects.get().detail == f"{kept.get_alarm_display()}: {detail}"[:500]
    row = fetched(address, sent(MANY))
    assert (UpstreamList.objects.get().alarm, row.said) == ("", "")
    assert [event[0] for event in events()][2:] == ["upstreamlist.alarm_cleared"]


def test_what_is_too_large_is_refused(address: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_sync, "BYTES_MAX", 100)
    fetched(address, sent(LIST))
    kept = UpstreamList.objects.get()
    assert (kept.alarm, kept.alarm_detail, disabled()) == ("refused", "it is larger than 100 bytes", [])


def test_silence_is_an_alarm_once_it_lasts(address: Recorder) -> None:
    moment = now()
    fetched(address, sent(LIST), at=moment)
    soon = moment + SILENT_AFTER
    row = fetched(address, http(503, b""), at=soon)
    assert (row.said, row.succeeded_at, UpstreamList.objects.get().alarm) == ("it answered 503", moment, "")
    late = soon + datetime.timedelta(minutes=1)
    row = fetched(address, Says(raw=b"nonsense\r\n\r\n"), at=late)
    kept = UpstreamList.objects.get()
    assert (kept.alarm, kept.alarm_detail, kept.answered_at) == ("silent", "it did not answer: ConnectionError", moment)
    assert disabled() == sorted(LIST)


# --- by hand ------------------------------------------------------------------------------------------------------


def test_an_operator_takes_it_from_a_file(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "disabled-tests.json"
    file.write_text(json.dumps({**LIST, "no test": []}))
    call_command("quarantine", "import", str(file))
    assert (
        capsys.readouterr().out == "4 disabled tests: 4 new, 0 changed, 0 removed, 1 lines of another form left out\n"
    )
    kept = UpstreamList.objects.get()
    assert (kept.source, kept.left_out, kept.answered_at) == ("disabled-tests.json", 1, None)
    body = body_of(Event.objects.get(action="upstreamlist.taken"))
    assert body["actor"]["label"] == "operator, by manage.py quarantine import"


def test_a_bad_file_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text(json.dumps(MANY))
    call_command("quarantine", "import", str(file))
    file.write_text("<html>")
    with pytest.raises(CommandError) as caught:
        call_command("quarantine", "import", str(file))
    assert str(caught.value) == f"{file} is refused, nothing changed: it begins with '<html>'. It is a web page."
    assert len(disabled()) == 20
    with pytest.raises(CommandError, match=r"nowhere\.json: No such file or directory\."):
        call_command("quarantine", "import", "nowhere.json")


def test_a_list_of_which_much_is_gone_is_taken_where_the_operator_says_so(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "list.json"
    file.write_text(json.dumps(MANY))
    call_command("quarantine", "import", str(file))
    file.write_text(json.dumps(LIST))
    with pytest.raises(CommandError, match="20 of 20 are gone"):
        call_command("quarantine", "import", str(file))
    capsys.readouterr()
    call_command("quarantine", "import", str(file), "--accept-shrink")
    assert capsys.readouterr().out == "4 disabled tests: 4 new, 0 changed, 20 removed\n"


# --- where it is shown --------------------------------------------------------------------------------------------


def test_a_tests_page_says_what_upstream_disabled_and_never_that_it_means_others(address: Recorder) -> None:
    kestrel = listed({"kestrel/torch": 2})["kestrel/torch"].platform
    rocm = in_tree("rocm", "AMD ROCm")
    fetched(address, sent(LIST))
    own = catalogued("test_a_npu_float32", "TestFooPRIVATEUSE1", "test_foo.py")
    everywhere = catalogued("test_b", "TestFoo", "test_foo.py")
    unclear = catalogued("test_c", "TestFoo", "test_foo.py")
    elsewhere = catalogued("test_d", "TestFoo", "test_foo.py")
    other = catalogued("test_b", "TestBar", "test_foo.py")
    assert [
        (one.line.said, [platform.slug for platform in one.platforms], one.reach.unknown)
        for test in (own, everywhere, unclear, elsewhere, other)
        for one in about(test)
    ] == [
        ("test_a_cuda_float32 (__main__.TestFooCUDA)", [rocm.slug], ()),
        ("test_b (__main__.TestFoo)", [rocm.slug], ()),
        ("test_c (__main__.TestFoo)", [], ("npu",)),
        ("test_d (__main__.TestFoo)", [], ()),
    ]
    PublicTest.objects.bulk_create([PublicTest(test=own), PublicTest(test=unclear), PublicTest(test=other)])
    shown = [Page(Client().get(f"/tests/{test.pk}/")) for test in (own, unclear, other)]
    assert [page.items.get("upstream") for page in shown] == [
        ["test_a_cuda_float32 (__main__.TestFooCUDA) on rocm, issue #77 ↗ Here: AMD ROCm"],
        ["test_c (__main__.TestFoo) on npu, issue #79 ↗ Here: ○ without effect “npu” is not known here"],
        None,
    ]
    assert ISSUE in shown[0].links
    assert not any(kestrel.name in page.text for page in shown)


def test_a_renamed_test_is_found_by_its_former_name(address: Recorder) -> None:
    fetched(address, sent(LIST))
    old, new = catalogued("test_b", "TestFoo"), catalogued("test_new", "TestFoo")
    assert about(new) == []
    alias_test(old=old, new=new, reason="renamed", actor=TESTS, now=now())
    assert [one.line.said for one in about(new)] == ["test_b (__main__.TestFoo)"]


def test_a_line_that_names_its_file_means_that_file(address: Recorder) -> None:
    fetched(address, sent({"test_m (jit.test_models.TestM)": ["1", ISSUE, []]}))
    there, other = catalogued("test_m", "TestM", "jit/test_models.py"), catalogued("test_m", "TestM", "test_models.py")
    assert ([one.line.issue for one in about(there)], about(other)) == (["1"], [])


@pytest.mark.parametrize("count", [1, 3])
def test_the_page_costs_the_same_however_long(
    address: Recorder, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    fetched(address, sent(dict(list(LIST.items())[:count])))
    client = Client()
    with django_assert_num_queries(6):
        page = Page(client.get("/quarantines/upstream/"))
    assert len(page.tables["tests"]) == count


def test_the_page_says_what_the_list_is_and_what_it_comes_to_here(address: Recorder, settings: Any) -> None:
    in_tree("rocm", "AMD ROCm")
    fetched(address, sent(LIST))
    page = Page(Client().get("/quarantines/upstream/"))
    assert page.facts["copy"]["From"] == settings.DISABLED_TESTS_URL
    assert page.tables["tests"] == [
        ("test_a_cuda_float32 (__main__.TestFooCUDA)", "#77 ↗", "rocm", "AMD ROCm"),
        ("test_b (__main__.TestFoo)", "#78 ↗", "all of its own", "AMD ROCm"),
        ("test_c (__main__.TestFoo)", "#79 ↗", "npu", "○ without effect “npu” is not known here"),
        ("test_d (__main__.TestFoo)", "#80 ↗", "linux", "no platform of this hub"),
    ]
    assert page.tables["words"] == [("npu", "1", "which in-tree platform it is, or none")]
    narrowed = Page(Client().get("/quarantines/upstream/?unknown=on&q=test_"))
    assert [row[0] for row in narrowed.tables["tests"]] == ["test_c (__main__.TestFoo)"]
    assert "/quarantines/upstream/" in Page(Client().get("/quarantines/")).links


def test_programs_read_the_same(address: Recorder) -> None:
    in_tree("rocm", "AMD ROCm")
    fetched(address, sent(LIST))
    answer = Client().get("/api/v1/upstream-disabled/?unknown=true&q=test_").json()
    assert answer == {
        "next": None,
        "previous": None,
        "results": [
            {
                "test": "test_c (__main__.TestFoo)",
                "issue": "79",
                "url": ISSUE,
                "platforms": ["npu"],
                "here": [],
                "unknown": ["npu"],
            }
        ],
    }
    assert Client().get("/api/v1/upstream-disabled/?format=csv&q=test_a").content.decode().splitlines() == [
        "test,issue,url,platforms,here,unknown",
        f"test_a_cuda_float32 (__main__.TestFooCUDA),77,{ISSUE},rocm,rocm,",
    ]
    first = Client().get("/api/v1/upstream-disabled/?limit=3").json()
    rest = Client().get(first["next"]).json()
    assert [line["test"] for line in first["results"] + rest["results"]] == sorted(LIST)


def test_an_alarm_is_said_on_the_page(address: Recorder) -> None:
    fetched(address, sent(LIST), http(200, b"<html>"))
    text = Page(Client().get("/quarantines/upstream/")).text
    assert "The list is not taken: the last good copy is shown it begins with '<html>'" in text


# --- words --------------------------------------------------------------------------------------------------------


def named(who: Any, **said: str) -> Any:
    client = Client()
    if who is not None:
        client.force_login(who)
    return client.post("/quarantines/upstream/", {"word": "npu", "reason": "it is theirs", **said})


def test_a_maintainer_says_which_in_tree_platform_a_word_means(address: Recorder) -> None:
    rocm = in_tree("rocm", "AMD ROCm")
    fetched(address, sent(LIST))
    maintainer = user(Role.MAINTAINER)
    assert named(maintainer, platform="rocm").status_code == 302
    word = UpstreamWord.objects.get()
    assert (word.word, word.platform, word.reason) == ("npu", rocm, "it is theirs")
    assert events()[-1] == (
        "upstreamword.named",
        "“npu” in upstream's list of disabled tests is AMD ROCm",
        "it is theirs",
        True,
    )
    page = Page(Client().get("/quarantines/upstream/"))
    assert ("words" in page.tables, page.tables["tests"][2][3]) == (False, "AMD ROCm")


def test_a_word_may_mean_no_platform_here(address: Recorder) -> None:
    fetched(address, sent(LIST))
    assert named(user(Role.MAINTAINER), platform="").status_code == 302
    assert UpstreamWord.objects.get().platform is None
    assert Page(Client().get("/quarantines/upstream/")).tables["tests"][2][3] == "no platform of this hub"


def test_a_platform_outside_the_tree_is_never_meant(address: Recorder) -> None:
    kestrel = listed({"kestrel/torch": 2})["kestrel/torch"].platform
    fetched(address, sent(LIST))
    answer = named(user(Role.MAINTAINER), platform=kestrel.slug)
    assert (answer.status_code, UpstreamWord.objects.count()) == (200, 0)
    assert "Select a valid choice" in answer.content.decode()


def test_a_placeholder_stays_without_effect_and_nobody_is_asked(address: Recorder) -> None:
    in_tree("rocm", "AMD ROCm")
    fetched(address, sent({"test_x (__main__.TestX)": ["1", ISSUE, ["all"]]}))
    page = Page(Client().get("/quarantines/upstream/"))
    assert page.tables["words"] == [("all", "1", "nothing: it names no platform, and never all")]
    assert page.tables["tests"][0][3] == "○ without effect “all” is not known here"
    assert named(user(Role.MAINTAINER), word="all", platform="rocm").status_code == 200
    assert UpstreamWord.objects.count() == 0


@pytest.mark.parametrize("role", [None, Role.OPERATOR])
def test_others_say_nothing_about_words(address: Recorder, role: Role | None) -> None:
    fetched(address, sent(LIST))
    assert named(user(role)).status_code == 403
    assert named(None).status_code == 403
    assert UpstreamWord.objects.count() == 0
