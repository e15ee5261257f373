"""Following upstream's file: what it says is in force, unless a guard keeps the last good copy and raises an alarm."""

import datetime
import hashlib
from typing import Any

import pytest
from django.test import override_settings

from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.platforms import tasks
from apps.platforms.models import AllowlistAlarm, LevelInterval, Repository, UpstreamFile
from apps.platforms.services import change_level
from apps.platforms.sync_policy import SILENT_AFTER, is_shrink
from tests.factories.listing import TESTS, listed
from tests.factories.upstream import Upstream

pytestmark = pytest.mark.django_db

LISTED = "L1:\n  - acme/one\nL2:\n  - acme/two: alice\nL3:\n  npu:\n    acme/three: [bob]\n    acme/four:\n"


def standings() -> dict[str, int]:
    return {one.full_name: one.level for one in Repository.objects.filter(level__gt=0).order_by("full_name")}


def alarms() -> list[tuple[str, str, str, bool]]:
    """(kind, detail, commit, is open), the first one first."""
    rows = AllowlistAlarm.objects.order_by("pk")
    return [(row.kind, row.detail, row.commit_sha, row.cleared_at is None) for row in rows]


def actions() -> list[str]:
    return list(Event.objects.order_by("seq").values_list("action", flat=True))


def test_the_first_round_takes_the_file(upstream: Upstream) -> None:
    moment = now()
    sha = upstream.says(LISTED, at=moment)
    assert standings() == {"acme/one": 1, "acme/two": 2, "acme/three": 3, "acme/four": 3}
    file = UpstreamFile.objects.get()
    assert (file.commit_sha, file.text, file.taken_at, file.answered_at) == (sha, LISTED, moment, moment)
    assert alarms() == []


def test_a_change_upstream_is_an_external_change_with_its_commit(upstream: Upstream) -> None:
    upstream.says(LISTED)
    text = LISTED.replace("- acme/two: alice", "- acme/five").replace("- acme/one", "- acme/two: alice")
    sha = upstream.push(text)
    upstream.round()
    event = Event.objects.get(subject_label="acme/two", action="repository.level_changed")
    body = body_of(event)
    committed_at = body["evidence"].pop("committed_at")
    assert datetime.datetime.fromisoformat(committed_at).utcoffset() == datetime.timedelta(0)
    assert {name: body[name] for name in ("actor", "summary", "reason", "evidence", "is_decision")} == {
        "actor": {"kind": "hub", "id": "hub", "label": "AccelHub"},
        "summary": "acme/two lowered from L2 to L1",
        "reason": f"external change: allowlist pytorch/pytorch/.github/allowlist.yml at {sha[:12]}",
        "evidence": {
            "bundle": "none",
            "source": f"pytorch/pytorch/.github/allowlist.yml at {sha[:12]}",
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "line": 2,
            "commit": sha,
        },
        "is_decision": True,
    }
    # Whoever committed it stands nowhere.
    assert not any("someone" in one.body.lower() for one in Event.objects.all())
    newest = LevelInterval.objects.filter(repository__full_name="acme/two").first()
    assert newest is not None
    assert (newest.level, newest.event_seq) == (1, event.seq)


def test_a_round_without_news_reads_no_content_and_writes_no_event(upstream: Upstream) -> None:
    upstream.says(LISTED)
    before, asked = Event.objects.count(), len(upstream.github.requests)
    upstream.round()
    upstream.held.push("README.md", "of no interest")
    upstream.round()
    assert Event.objects.count() == before
    paths = [request.path.removeprefix("/repos/pytorch/pytorch") for request in upstream.github.requests[asked:]]
    assert paths == ["/commits", "/git/matching-refs/heads%2Fcrcr-demotion%2F"] * 2


def test_where_the_listing_is_another_than_the_file_the_file_wins(upstream: Upstream) -> None:
    upstream.says(LISTED)
    listed({"acme/one": 4, "acme/other": 2})  # what no service allows meanwhile
    upstream.round()
    assert standings() == {"acme/one": 1, "acme/two": 2, "acme/three": 3, "acme/four": 3}


ELEVEN = "L1:\n" + "".join(f"  - acme/{number}\n" for number in range(11))

REFUSED: dict[str, tuple[str, str | bytes | None, str, str]] = {
    "a web page": (
        LISTED,
        "\n<!DOCTYPE html>\n<title>Sign in</title>",
        "html",
        "it begins with '<!DOCTYPE html>\\n<title>Sign in</title>'",
    ),
    "nothing": (LISTED, " \n", "empty", "it has no content"),
    "nobody": (LISTED, "L1: []\n", "empty", "it lists nobody, 4 are listed here"),
    "not UTF-8": (LISTED, b"L1:\n  - a/b: \xe9\n", "unreadable", "byte 13 is not UTF-8"),
    "one problem": (
        LISTED,
        "L9:\n",
        "unreadable",
        "line 1, column 1: 'L9' is not a level — write L1, L2, L3 or L4",
    ),
    "two problems": (
        LISTED,
        "L8:\nL9:\n",
        "unreadable",
        "line 1, column 1: 'L8' is not a level — write L1, L2, L3 or L4 (and 1 more)",
    ),
    "a character that no text column takes": (
        LISTED,
        "L1:\x00\n",
        "unreadable",
        "line 1, column 4: the character U+0000 cannot stand in this file — write the line without it",
    ),
    "two of L3": (
        LISTED,
        "L1:\n  - acme/one\nL2:\n  - acme/two: alice\n",
        "shrink",
        "2 of 4 entries are gone: acme/four (L3), acme/three (L3)",
    ),
    "too many": (
        ELEVEN,
        "L1:\n" + "".join(f"  - acme/{number}\n" for number in range(8)),
        "shrink",
        "3 of 11 entries are gone: acme/10 (L1), acme/8 (L1), acme/9 (L1)",
    ),
    "the file itself is gone": (LISTED, None, "refused", "GitHub answered 404: Not Found"),
    "too large": (LISTED, "#" * 1_000_001, "refused", "GitHub answered 413: .github/allowlist.yml is larger than 1 MB"),
}


@pytest.mark.parametrize(("good", "bad", "kind", "detail"), REFUSED.values(), ids=REFUSED)
def test_a_guard_keeps_the_last_good_copy_and_raises_an_alarm_once(
    upstream: Upstream, good: str, bad: str | bytes | None, kind: str, detail: str
) -> None:
    sha = upstream.says(good)
    before, count = standings(), Event.objects.count()
    seen = upstream.push(bad)
    for _ in range(3):
        upstream.round()
    assert standings() == before
    assert UpstreamFile.objects.get().commit_sha == sha
    commit = "" if kind == "refused" else seen
    assert alarms() == [(kind, detail, commit, True)]
    (event,) = Event.objects.filter(seq__gt=count)
    body = body_of(event)
    assert (body["action"], body["reason"], body["evidence"], body["is_decision"]) == (
        "allowlist.alarm_raised",
        detail,
        {"guard": kind, "commit": commit},
        False,
    )
    assert list(Wakeup.objects.filter(topic="allowlist_alarm").values_list("key", flat=True)) == [
        str(AllowlistAlarm.objects.get().pk)
    ]


def test_what_may_go_goes(upstream: Upstream) -> None:
    upstream.says(ELEVEN)
    upstream.says("L1:\n" + "".join(f"  - acme/{number}\n" for number in range(9)))
    assert (len(standings()), alarms()) == (9, [])
    upstream.says(LISTED)
    assert [kind for kind, *_ in alarms()] == ["shrink"]


@pytest.mark.parametrize(
    ("gone", "before", "expected"),
    [(2, 3, False), (3, 3, True), (3, 15, False), (3, 14, True), (20, 100, False), (21, 100, True), (0, 0, False)],
)
def test_how_many_may_go_at_once(gone: int, before: int, expected: bool) -> None:
    assert is_shrink(gone, before) is expected


def test_a_lowering_is_nothing_that_is_gone(upstream: Upstream) -> None:
    upstream.says(LISTED)
    upstream.says("L1:\n  - acme/one\n  - acme/three\n  - acme/four\nL2:\n  - acme/two: alice\n")
    assert (standings(), alarms()) == ({"acme/one": 1, "acme/two": 2, "acme/three": 1, "acme/four": 1}, [])


def test_a_repaired_file_ends_the_alarm(upstream: Upstream) -> None:
    upstream.says(LISTED)
    upstream.says("")
    upstream.says("<html>")
    assert [(kind, is_open) for kind, _, _, is_open in alarms()] == [("empty", False), ("html", True)]
    upstream.says(LISTED.replace("- acme/one", "- acme/nine"))
    assert [is_open for *_, is_open in alarms()] == [False, False]
    assert standings() == {"acme/nine": 1, "acme/two": 2, "acme/three": 3, "acme/four": 3}
    assert actions()[-5:] == [
        *("allowlist.alarm_raised", "allowlist.alarm_raised"),
        *("repository.listed", "repository.level_changed", "allowlist.alarm_cleared"),
    ]


def test_the_very_first_file_is_held_against_what_the_hub_has(upstream: Upstream) -> None:
    listed({"acme/one": 3, "acme/two": 3, "acme/three": 1})
    upstream.says("L1:\n  - acme/three\n")
    assert [kind for kind, *_ in alarms()] == ["shrink"]
    assert standings() == {"acme/one": 3, "acme/two": 3, "acme/three": 1}


def test_a_github_that_is_away_is_an_alarm_only_after_a_while(upstream: Upstream) -> None:
    start = now()
    upstream.says(LISTED, at=start)
    upstream.github.fail("/commits", 502, times=2)
    upstream.round(start + SILENT_AFTER)
    assert alarms() == []
    late = start + SILENT_AFTER + datetime.timedelta(seconds=1)
    upstream.round(late)
    upstream.github.fail("/commits", 0, times=1)
    upstream.round(late)
    assert alarms() == [("silent", "GitHub answered 502", "", True)]
    upstream.round(late)
    assert [is_open for *_, is_open in alarms()] == [False]
    assert standings() == {"acme/one": 1, "acme/two": 2, "acme/three": 3, "acme/four": 3}


def test_a_page_that_stands_before_github_is_no_answer(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.simulator.wire import Answer

    upstream.says(LISTED)
    sound = upstream.github._answers.route

    def route(request: Any) -> Answer:
        return Answer(200, html="<html>Sign in</html>") if request.path.endswith("/commits") else sound(request)

    monkeypatch.setattr(upstream.github._answers, "route", route)
    upstream.round(now() + SILENT_AFTER + datetime.timedelta(minutes=1))
    assert alarms() == [("silent", "GitHub's answer is no list of commits", "", True)]
    assert len(standings()) == 4


def test_what_github_refuses_beside_the_file_does_not_hold_it_up(
    upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    upstream.says(LISTED)
    change_level(repository=Repository.objects.get(full_name="acme/one"), level=2, reason="so", actor=TESTS, now=now())
    upstream.open_pull_requests()
    upstream.github.fail("/pulls/1$", 404, message="Not Found")
    upstream.github.fail("matching-refs", 403, message="Resource not accessible by integration")
    upstream.says(LISTED + "L4:\n  - acme/five\n")
    assert standings() == {"acme/one": 1, "acme/two": 2, "acme/three": 3, "acme/four": 3, "acme/five": 4}
    assert "pull request #1 of decision #5: GitHub answered 404: Not Found" in caplog.text
    assert "demotions of pytorch/pytorch/.github/allowlist.yml: GitHub answered 403" in caplog.text


def test_a_hub_that_owns_the_list_asks_nobody(upstream: Upstream) -> None:
    upstream.push(LISTED)
    with override_settings(ALLOWLIST_AUTHORITY="hub"):
        tasks.sync_allowlist()
    assert (upstream.github.requests, standings()) == ([], {})
    tasks.sync_allowlist()
    assert len(standings()) == 4
