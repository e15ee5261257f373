"""A report's findings and its skips: the pages and the API."""

from typing import Any

import pytest
from django.test import Client

from apps.core.clock import now
from apps.platforms.models import Repository
from apps.relay.models import Commit
from apps.results.elsewhere import Verdict, verdict_of
from apps.results.fingerprints import fingerprint
from apps.results.models import Report, Upload
from apps.results.names.rules import words_of
from apps.results.removal import remove_report
from tests.factories.jobs import job
from tests.factories.listing import TESTS, member_of
from tests.factories.pages import Page
from tests.relay.downstream import refusal
from tests.results.conftest import Reporting
from tests.results.reporter import ended, received, reported, upload

KESTREL, FALCON, OSPREY = "kestrel/torch", "falcon/torch", "osprey/torch"
BASE, HEAD = "aa" * 20, "bb" * 20


def api(report: Any, room: str, client: Client | None = None, **query: Any) -> Any:
    return (client or Client()).get(f"/api/v1/reports/{report.public_id}/{room}/", query)


def page_of(report: Any, room: str, **query: Any) -> Page:
    answer = Client().get(f"/reports/{report.public_id}/{room}/", query)
    assert answer.status_code == 200
    return Page(answer)


def placed() -> None:
    for position, (sha, parent) in enumerate(((BASE, ""), (HEAD, BASE))):
        Commit.objects.create(sha=sha, parent_sha=parent, position=position, placed_at=now())


@pytest.mark.parametrize(
    ("is_at_base", "is_elsewhere", "others", "verdict"),
    [
        (True, True, 1, Verdict.BEFORE),
        (True, False, 0, Verdict.BEFORE),
        (False, True, 1, Verdict.ELSEWHERE),
        (False, False, 2, Verdict.HERE),
        (False, False, 0, Verdict.UNKNOWN),
    ],
)
def test_what_the_others_suggest(is_at_base: bool, is_elsewhere: bool, others: int, verdict: Verdict) -> None:
    assert verdict_of(is_at_base=is_at_base, is_elsewhere=is_elsewhere, others=others) is verdict


def test_findings_with_where_else_they_are(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2, FALCON: 2, OSPREY: 1})
    placed()
    base = reported(made[KESTREL], ended("test_a", "failed", "old"), head_sha=BASE)
    falcon = reported(made[FALCON], ended("test_b", "passed"), ended("test_x", "failed", "wide"), head_sha=HEAD)
    reported(made[OSPREY], ended("test_c", "failed", "mine"), head_sha=HEAD)
    reported(made[FALCON], ended("test_c", "failed", "mine"), head_sha=HEAD, variant="slow")
    red = [ended("test_a", "failed", "new"), ended("test_b", "failed", "wide"), ended("test_c", "failed", "mine")]
    report = reported(made[KESTREL], *red, ended("test_d", "passed"), head_sha=HEAD)
    body = api(report, "findings").json()
    assert (body["looked_at"], body["next"], body["previous"]) == (
        {"commit": 1, "base": 1, "base_is": "of the base commit"},
        None,
        None,
    )
    results = body["results"]
    assert [(row["test"]["name"], row["outcome"], row["message"], row["verdict"]) for row in results] == [
        ("test_a", "failed", "new", "before"),
        ("test_b", "failed", "wide", "elsewhere"),
        ("test_c", "failed", "mine", "here"),
    ]
    assert results[1]["fingerprint"] == fingerprint("wide", "wide", words_of("npu")).hex()
    assert (results[0]["trace"], results[0]["attempts"]) == ("new", 1)

    def sighting(other: Any, where: str, outcome: str | None, same: int) -> dict[str, Any]:
        about = {"report": str(other.public_id), "platform": other.platform.slug, "head_sha": other.head_sha}
        return about | {"where": where, "outcome": outcome, "same_failure": same}

    assert [row["elsewhere"] for row in results] == [
        [sighting(base, "base", "failed", 0)],
        [sighting(falcon, "commit", None, 1)],
        [],
    ]
    page = page_of(report, "findings")
    assert [row[1:] for row in page.tables["findings-head"]] == [
        ("■ failed", "◆ there before: it is found at the base commit too torch at the base: failed"),
        (
            "■ failed",
            "◆ not here alone: another platform has it at this commit "
            "torch: this test not among its findings, the same failure in 1 test",
        ),
        ("■ failed", "▲ here alone: no other platform that reported this commit has it"),
    ]
    assert "looked for in 1 other report of the commit and 1 of the base" in page.text
    assert page_of(report, "findings", outcome="lost").tables == {}
    assert refusal(api(report, "findings", outcome="nonsense")) == (400, "malformed", "outcome")
    alone = reported(made[KESTREL], ended("test_a", "failed", "new"))
    assert api(alone, "findings").json()["results"][0]["verdict"] == "unknown"


def test_what_members_see_includes_their_private_reports(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2, OSPREY: 1})
    private = reported(made[OSPREY], ended("test_c", "failed", "mine"), head_sha=HEAD)
    report = reported(made[KESTREL], ended("test_c", "failed", "mine"), head_sha=HEAD)
    member = Client()
    member.force_login(member_of(private.platform))
    assert [row["verdict"] for row in api(report, "findings").json()["results"]] == ["unknown"]
    assert [row["verdict"] for row in api(report, "findings", member).json()["results"]] == ["elsewhere"]
    for room in ("findings", "skips"):
        assert Client().get(f"/reports/{private.public_id}/{room}/").status_code == 404
        assert api(private, room).status_code == 404
        assert api(private, room, member).status_code == 200


def test_skips_by_reason_each_borne_out_or_self_reported(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2, FALCON: 2, OSPREY: 1})
    issue = "https://github.com/pytorch/pytorch/issues/5"
    disabled = f"Test is disabled because an issue exists disabling it: {issue} for platform(s) linux, rocm."
    report = reported(
        made[KESTREL],
        *(ended(f"test_{number}", "skipped", "Only runs on cuda") for number in range(3)),
        ended("test_d", "skipped", disabled),
        ended("test_e", "skipped", "No complex support"),
        ended("test_f", "passed"),
        head_sha=HEAD,
    )
    before = api(report, "skips").json()
    assert (before["witnesses"], before["results"][0]["corroborated"], before["results"][0]["trust"]) == (
        [],
        0,
        "self-reported",
    )
    ran = [ended("test_0", "passed"), ended("test_1", "failed"), ended("test_2", "skipped"), ended("test_e", "passed")]
    reported(made[OSPREY], *(ended(f"test_{number}", "passed") for number in range(3)), head_sha=HEAD)
    witness = reported(made[FALCON], *ran, head_sha=HEAD)
    body = api(report, "skips").json()
    assert body == {
        "tests": 5,
        "classes": [
            {"class": "wrong_device", "tests": 3, "corroborated": 2},
            {"class": "unsupported", "tests": 1, "corroborated": None},
            {"class": "disabled", "tests": 1, "corroborated": None},
        ],
        "witnesses": [{"report": str(witness.public_id), "platform": witness.platform.slug}],
        "next": None,
        "previous": None,
        "results": [
            line("wrong_device", "Only runs on cuda", 3, 2),
            line("disabled", disabled, 1, None, issue=issue, platforms=["linux", "rocm"]),
            line("unsupported", "No complex support", 1, None),
        ],
    }
    disabled_only = Client().get(f"/api/v1/reports/{report.public_id}/skips/?class=disabled").json()
    assert [row["reason"] for row in disabled_only["results"]] == [disabled]
    page = page_of(report, "skips")
    assert page.tables["classes"][0][1:] == ("3", "◐ corroborated 2 ○ self-reported 1")
    assert page.tables["reasons"][2] == ("No complex support", "unsupported", "1", "○ self-reported 1")
    chosen = next(link for link in page.links if link.startswith("?reason="))
    tests = Page(Client().get(f"/reports/{report.public_id}/skips/{chosen}"))
    assert tests.items["reasons"] == [f"test_{number} test_foo · TestFoo" for number in range(3)]
    reported(made[FALCON], *(ended(f"test_{number}", "passed") for number in range(3)), head_sha=HEAD)
    assert api(report, "skips").json()["results"][0] == line("wrong_device", "Only runs on cuda", 3, 3)


def line(skip_class: str, reason: str, tests: int, corroborated: int | None, **more: Any) -> dict[str, Any]:
    trust = "corroborated" if corroborated == tests else "self-reported"
    said = {"class": skip_class, "reason": reason, "tests": tests, "corroborated": corroborated, "trust": trust}
    return said | {"issue": None, "platforms": []} | more


def test_reports_are_found_on_the_pages_of_their_platform_and_job(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2, OSPREY: 1})
    public = reported(made[KESTREL], ended("test_a", "failed"), ended("test_b", "skipped"))
    private = reported(made[OSPREY], ended("test_c", "failed", "mine"))
    page = Page(Client().get(f"/platforms/{public.platform.slug}/"))
    said = "build, default 2 tests: 1 failed, 1 skipped"
    assert [item.partition(";")[0] for item in page.items["reports"]] == [said]
    of_it = job(Repository.objects.get(full_name=KESTREL), "success")
    Upload.objects.filter(report=public).update(job=of_it)
    page = Page(Client().get(f"/jobs/{of_it.public_id}/"))
    assert [item.partition(";")[0] for item in page.items["reports"]] == [said]
    assert "reports" not in Page(Client().get(f"/platforms/{private.platform.slug}/")).items
    member = Client()
    member.force_login(member_of(private.platform))
    assert len(Page(member.get(f"/platforms/{private.platform.slug}/")).items["reports"]) == 1


def test_rooms_of_a_report_that_shows_no_tests_say_why(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    waiting = Report.objects.get(public_id=received(upload(made)))
    green = reported(made, ended("test_a", "passed"))
    empty = reported(made)
    for room, words in {"findings": "Nothing went wrong", "skips": "No test was skipped"}.items():
        assert "Not read yet" in page_of(waiting, room).text
        assert refusal(api(waiting, room)) == (409, "report_unready", None)
        assert words in page_of(green, room).text
    assert "The report holds no test" in page_of(empty, "findings").text
    remove_report(report=green, reason="A name.", actor=TESTS, now=now())
    for room in ("findings", "skips"):
        assert "A name." in page_of(green, room).text
        assert refusal(api(green, room)) == (409, "report_removed", None)


@pytest.mark.parametrize("count", [1, 3])
def test_the_rooms_cost_the_same_however_much_there_is(
    reporting: Reporting, count: int, django_assert_num_queries: Any
) -> None:
    made = reporting({KESTREL: 2, FALCON: 2})
    placed()
    made_reports = []
    for repository, sha in ((KESTREL, BASE), (FALCON, HEAD), (KESTREL, HEAD)):
        red = [ended(f"test_{number}", "failed", f"no {number}") for number in range(count)]
        skipped = [ended(f"test_s{number}", "skipped", f"Only runs on {'xyz'[number]}") for number in range(count)]
        made_reports.append(reported(made[repository], *red, *skipped, head_sha=sha))
    report = made_reports[-1]
    for room, queries in {"findings": 11, "skips": 5}.items():
        with django_assert_num_queries(queries):
            assert Client().get(f"/reports/{report.public_id}/{room}/").status_code == 200
        with django_assert_num_queries(queries):
            assert len(api(report, room).json()["results"]) == count
    with django_assert_num_queries(12):
        assert Client().get(f"/reports/{report.public_id}/").status_code == 200
