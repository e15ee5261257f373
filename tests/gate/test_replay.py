"""Had a repository been blocking: which pull requests, which wrongly, what is unknown, how long the wait."""

import datetime
import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.core.errors import Problem
from apps.gate.models import KeptReplay
from apps.gate.replay import replay, replays
from apps.gate.replay_policy import Replay
from apps.platforms.models import LevelInterval, Repository
from apps.relay.models import Delivery, Dispatch, Job, Omission
from apps.results.exclusions import exclude
from tests.factories.listing import member_of
from tests.factories.pages import Page
from tests.gate.field import FEN, NUMBER, PLACE, Field, failure, hours, main_sha

NOW = hours(48)


@pytest.fixture
def fen_field(gate_field: Field) -> Field:
    """Fen, at L3, is asked about; what main's last commit says of its tests is known."""
    gate_field.reports({}, repository=gate_field.fen, sha=main_sha(PLACE), at=-1)
    return gate_field


def head(number: int, letter: str = "0") -> str:
    return f"{number:04d}{letter}".ljust(40, "a")


def sends(field: Field, number: int = NUMBER, letter: str = "0", at: float = 0) -> str:
    """A head that Fen is sent."""
    sha = head(number, letter)
    field.sends(field.fen, number=number, sha=sha, at=at)
    return sha


def fails(field: Field, number: int = NUMBER, letter: str = "0", at: float = 0.5, red: str = "test_a") -> Job:
    """A head on which Fen fails with one red test, which was green at the base."""
    sha = sends(field, number, letter, at - 0.5)
    return field.fails({red: f"boom {number}"}, repository=field.fen, number=number, sha=sha, at=at)


def reruns(field: Field, failed: Job, at: float = 3) -> None:
    """The run's second attempt passes."""
    again: Any = {"number": failed.pr_number, "sha": failed.head_sha, "run_id": failed.run_id, "run_attempt": 2}
    field.says("success", repository=field.fen, at=at, **again)


def asked(field: Field, now: datetime.datetime = NOW, days: int = 14) -> Replay:
    return replay(field.fen, days=days, now=now)


def short(found: Replay) -> list[tuple[int, str, list[str], tuple[str, ...], float | None]]:
    """Of each head: pull request, outcome, why the block was wrong, sentences, hours of waiting."""
    return [
        (one.pr_number, one.outcome.value, [why.value for why in one.wrong], one.sentences, one.hours)
        for one in found.heads
    ]


COUNTS = ("pull_requests", "blocked", "blocked_wrongly", "unknown", "unanswered", "passed")


def counts(found: Replay) -> dict[str, object]:
    return {key: value for key, value in found.written().items() if key in COUNTS}


NEW = ("1 new failure of 1 red test.",)


def test_a_new_failure_would_have_blocked_and_a_success_would_not(fen_field: Field) -> None:
    fails(fen_field, 7)
    fen_field.says("success", repository=fen_field.fen, number=8, sha=sends(fen_field, 8))
    found = asked(fen_field)
    assert short(found) == [
        (7, "blocked", [], NEW, 0.7),
        (8, "passed", [], ("1 job passed.",), 0.67),
    ]
    none = {"green_again": 0, "quarantined": 0, "infrastructure": 0}
    assert found.written() | {"heads": []} == {
        "repository": FEN,
        "since": "2026-11-08T00:00:00+00:00",
        "until": "2026-11-22T00:00:00+00:00",
        "made_at": "2026-11-22T12:00:00+00:00",
        "pull_requests": 2,
        "blocked": 1,
        "blocked_wrongly": 0,
        "blocked_wrongly_by": none,
        "unknown": 0,
        "unanswered": 0,
        "passed": 1,
        "hours_waited": 1.37,
        "hours_waited_median": 0.69,
        "heads": [],
    }
    (first, _) = found.written()["heads"]
    assert first == {
        "pr": 7,
        "sha": head(7),
        "told_at": "2026-11-20T12:00:00+00:00",
        "at": "2026-11-20T12:42:00+00:00",
        "outcome": "blocked",
        "wrong": [],
        "hours": 0.7,
        "policy": 0,
        "sentences": list(NEW),
        "rows": [
            {"kind": "test", "label": "TestX.test_a", "url": f"/tests/{fen_field.test('test_a').pk}/"},
            {"kind": "commit", "label": f"base {main_sha(PLACE)[:12]}", "url": f"/commit/{main_sha(PLACE)}/"},
        ],
    }


def test_a_block_is_wrong_where_the_same_commit_was_green_on_a_re_run(fen_field: Field) -> None:
    failed = fails(fen_field)
    reruns(fen_field, failed)
    found = asked(fen_field)
    assert short(found) == [(NUMBER, "blocked", ["green_again"], NEW, 0.7)]
    assert (found.blocked, found.wrongly, found.wrongly_by["green_again"]) == (1, 1, 1)
    Job.objects.filter(run_attempt=2).update(first_seen_at=hours(30), completed_at=hours(31))
    # Nobody knows before the re-run.
    assert (asked(fen_field, now=hours(24)).wrongly, asked(fen_field).wrongly) == (0, 1)


def test_another_commit_that_is_green_excuses_nothing(fen_field: Field) -> None:
    fails(fen_field)
    mended = sends(fen_field, NUMBER, "1", at=3)
    fen_field.says("success", repository=fen_field.fen, sha=mended, at=3.5)
    found = asked(fen_field)
    assert short(found) == [(NUMBER, "blocked", [], NEW, 0.7), (NUMBER, "passed", [], ("1 job passed.",), 0.67)]
    assert (found.looked_at, found.blocked, found.wrongly, found.passed) == (1, 1, 0, 0)


def test_a_block_is_wrong_where_all_that_blocked_was_quarantined_afterwards(fen_field: Field) -> None:
    fails(fen_field, 7)
    failed = fails(fen_field, 8)
    report = fen_field.fen.reports.get(run_id=failed.run_id)
    report.findings.create(test=fen_field.test("test_b"), outcome="failed", fingerprint=failure("more"))
    exclude(
        source="quarantine",
        source_id="1",
        url="/quarantines/1/",
        platform=fen_field.fen.platform,
        variant=report.variant,
        tests=[fen_field.test("test_a").pk],
        pattern="",
        reason="flaky",
        from_at=hours(6),
        until_at=None,
    )
    found = asked(fen_field)
    assert [(one.pr_number, [why.value for why in one.wrong]) for one in found.heads] == [(7, ["quarantined"]), (8, [])]
    assert {"kind": "quarantine", "label": "flaky", "url": "/quarantines/1/"} in found.written()["heads"][0]["rows"]
    # A result that comes while it holds is excused by the gate itself.
    fails(fen_field, 9, at=7)
    assert short(asked(fen_field))[-1][:2] == (9, "passed")


@pytest.mark.parametrize(
    ("conclusion", "values", "wrong"),
    [
        ("startup_failure", {}, ["infrastructure"]),
        ("timed_out", {"flags": ["inferred"]}, ["infrastructure"]),
        ("timed_out", {}, []),
        ("failure", {}, []),
    ],
)
def test_a_block_is_wrong_where_a_machine_never_said_anything(
    fen_field: Field, conclusion: str, values: dict[str, Any], wrong: list[str]
) -> None:
    fen_field.says(conclusion, repository=fen_field.fen, sha=sends(fen_field), **values)
    assert [one[:3] for one in short(asked(fen_field))] == [(NUMBER, "blocked", wrong)]


def test_what_another_platform_has_too_is_no_wrong_block(fen_field: Field) -> None:
    failed = fails(fen_field)
    fen_field.sends(fen_field.kestrel, sha=failed.head_sha)
    fen_field.fails({"test_a": f"boom {NUMBER}"}, sha=failed.head_sha, at=0.4)
    reruns(fen_field, failed)
    found = asked(fen_field)
    assert (found.blocked, found.wrongly) == (1, 0)
    assert "1 more platform" in found.heads[0].sentences[0]


def test_what_was_red_at_the_base_already_would_not_have_blocked(fen_field: Field) -> None:
    fen_field.reports({"test_a": "boom 7"}, repository=fen_field.fen, sha=main_sha(PLACE), at=-0.9, variant="other")
    fails(fen_field, 7)
    assert asked(fen_field).blocked == 1
    fen_field.fen.reports.filter(variant="other").update(variant="default")
    assert (asked(fen_field).blocked, asked(fen_field).passed) == (0, 1)


def test_what_is_not_known_is_unknown_and_never_as_if_it_had_passed(fen_field: Field) -> None:
    sha = sends(fen_field, 7)
    fen_field.says("success", repository=fen_field.fen, number=7, sha=sha, bucket="contradicted", judged_at=hours(30))
    sends(fen_field, 8)
    Dispatch.objects.filter(delivery__pr_number=8).delete()
    delivery = Delivery.objects.get(pr_number=8)
    Omission.objects.create(delivery=delivery, repository=fen_field.fen, rule="sample", sentence="It takes 10 %.")
    known = "What 1 job said at that moment is not known any more."
    found = asked(fen_field)
    assert short(found) == [
        (7, "unknown", [], (known,), None),
        (8, "unknown", [], ("It was not sent it, so it said nothing: It takes 10 %.",), None),
    ]
    assert counts(found) == {
        "pull_requests": 2,
        "blocked": 0,
        "blocked_wrongly": 0,
        "unknown": 2,
        "unanswered": 0,
        "passed": 0,
    }
    assert found.by_day() == {}


def test_what_was_said_at_l1_or_before_is_unknown(fen_field: Field) -> None:
    fails(fen_field, 7, at=0.5)
    fails(fen_field, 8, at=10)
    LevelInterval.objects.filter(repository=fen_field.fen).delete()
    for level, start, end in ((1, 5, 20), (3, 20, None)):
        LevelInterval.objects.create(
            repository=fen_field.fen,
            level=level,
            started_at=hours(start),
            ended_at=None if end is None else hours(end),
            event_seq=1,
        )
    assert short(asked(fen_field)) == [
        (7, "unknown", [], ("It was not listed then.",), None),
        (8, "unknown", [], ("It was at L1 then: what it said is not kept as jobs.",), None),
    ]


def test_what_was_said_while_it_was_at_l1_for_a_while_is_unknown(fen_field: Field) -> None:
    sends(fen_field, 7)
    fails(fen_field, 8, at=1)
    LevelInterval.objects.filter(repository=fen_field.fen).delete()
    for level, start, end in ((3, -9, 2), (1, 2, 4), (3, 4, None)):
        LevelInterval.objects.create(
            repository=fen_field.fen,
            level=level,
            started_at=hours(start),
            ended_at=None if end is None else hours(end),
            event_seq=1,
        )
    assert [one[:2] for one in short(asked(fen_field))] == [(7, "unknown"), (8, "blocked")]


def test_a_block_by_an_older_red_end_once_the_wait_for_a_re_run_is_over_is_seen(fen_field: Field) -> None:
    failed = fails(fen_field, 7)
    again: Any = {"number": 7, "sha": failed.head_sha, "run_id": failed.run_id, "run_attempt": 2}
    # It begins before its report is read and goes on beyond the wait, so only then it blocks.
    made = fen_field.says("success", repository=fen_field.fen, at=0.6, **again)
    Job.objects.filter(pk=made.pk).update(completed_at=hours(7))
    assert short(asked(fen_field)) == [(7, "blocked", ["green_again"], NEW, 6.0)]


def test_silence_waits_and_then_passes_with_the_policys_record(fen_field: Field) -> None:
    sends(fen_field, 7)
    sends(fen_field, 8)
    sends(fen_field, 8, "1", at=2)
    assert short(asked(fen_field)) == [
        (7, "passed", [], ("No job of it was heard for this commit: passes, by policy; recorded here.",), 6.0),
        (
            8,
            "unanswered",
            [],
            (
                "Still awaited when a newer head came.",
                "No job of it was heard for this commit: awaited until 2026-11-20 18:00 UTC.",
            ),
            None,
        ),
        (8, "passed", [], ("No job of it was heard for this commit: passes, by policy; recorded here.",), 6.0),
    ]


def test_only_whole_days_before_today_are_looked_at(fen_field: Field) -> None:
    fails(fen_field, 7)
    assert [asked(fen_field, hours(when), days).looked_at for when, days in ((11, 14), (12, 1), (37, 1))] == [0, 1, 0]
    with pytest.raises(Problem, match="days: saw 91, send 1 to 90"):
        asked(fen_field, days=91)


def test_a_number_of_queries_that_does_not_grow_with_the_heads(fen_field: Field) -> None:
    asked_for = []
    for first, last in ((1, 2), (2, 12)):
        for number in range(first, last):
            fails(fen_field, number)
        with CaptureQueriesContext(connection) as queries:
            assert asked(fen_field).blocked == last - 1
        asked_for.append(len(queries))
    assert asked_for[0] == asked_for[1]


def test_several_at_once_say_what_each_says_alone(gate_field: Field) -> None:
    fen, kestrel = gate_field.fen, gate_field.kestrel
    for repository in (fen, kestrel):
        gate_field.reports({}, repository=repository, sha=main_sha(PLACE), at=-1)
    fails(gate_field, 7)
    gate_field.sends(kestrel, number=8, sha=head(8))
    gate_field.fails({"test_b": "bang"}, number=8, sha=head(8), at=2)
    both = replays([fen, kestrel], days=14, now=NOW)
    assert both == {one.pk: replay(one, days=14, now=NOW) for one in (fen, kestrel)}
    assert {pk: [(one.pr_number, one.outcome) for one in found.heads] for pk, found in both.items()} == {
        fen.pk: [(7, "blocked"), (8, "passed")],
        kestrel.pk: [(7, "passed"), (8, "blocked")],
    }


def test_what_was_written_is_read_whole(fen_field: Field) -> None:
    reruns(fen_field, fails(fen_field, 7))
    sends(fen_field, 8)
    found = asked(fen_field)
    assert [bool(one.rows) for one in found.heads] == [True, False]
    assert Replay.read(json.loads(json.dumps(found.written()))) == found


URL = f"/repositories/{FEN}/replay/"


@pytest.fixture
def lately(fen_field: Field, monkeypatch: pytest.MonkeyPatch) -> Field:
    """A block that was wrong and one that was not, as the pages show them on the third day."""
    monkeypatch.setattr("apps.gate.replay_views.now", lambda: NOW)
    reruns(fen_field, fails(fen_field, NUMBER))
    fails(fen_field, 8)
    return fen_field


def test_the_page_says_what_would_have_been(lately: Field, client: Client) -> None:
    page = Page(client.get(URL))
    assert page.facts["counts"] == {
        "Looked at": "2",
        "Blocked": "2, 1 of them wrongly",
        "Wrongly: 1": "The same check passed in a later run of the same commit.",
        "Passed": "0",
        "Without a final answer": "0",
        "Unknown": "0",
        "Waiting": "1.4 h over 2 heads, median 0.7 h",
    }
    assert [(row[0], row[1]) for row in page.tables["heads"]] == [
        (f"#{NUMBER} {head(NUMBER)[:7]}", "■ blocked wrongly: green on a re-run"),
        (f"#8 {head(8)[:7]}", "■ blocked"),
    ]
    assert Page(client.get(URL, {"days": "7; DROP"})).heading == f"Had {FEN} been blocking"


def test_for_an_hour_of_the_same_day_pages_tell_what_was_found_and_decisions_do_not(
    lately: Field, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(after: float) -> tuple[str, str]:
        """When it was made, and what was blocked."""
        monkeypatch.setattr("apps.gate.replay_views.now", lambda: NOW + datetime.timedelta(hours=after))
        said = client.get("/api/v1/gate/replay/", {"repository": FEN}).json()
        assert Page(client.get(URL)).facts["counts"]["Blocked"].startswith(f"{said['blocked']}, ")
        return said["made_at"][11:16], f"{said['blocked']} blocked, {said['blocked_wrongly']} wrongly"

    first = told(0)
    reruns(lately, Job.objects.get(pr_number=8))
    assert [first, told(0.9), told(1), told(12), told(12.5)] == [
        ("12:00", "2 blocked, 1 wrongly"),
        ("12:00", "2 blocked, 1 wrongly"),
        ("13:00", "2 blocked, 2 wrongly"),
        ("00:00", "2 blocked, 2 wrongly"),
        ("00:00", "2 blocked, 2 wrongly"),
    ]
    assert (KeptReplay.objects.count(), asked(lately).wrongly) == (1, 2)


def test_the_api_says_the_same_as_json_and_as_csv(lately: Field, client: Client) -> None:
    asked_for: dict[str, Any] = {"repository": FEN, "days": 14}
    assert client.get("/api/v1/gate/replay/", asked_for).json() == asked(lately).written()
    lines = client.get("/api/v1/gate/replay/", asked_for | {"format": "csv"}).content.decode().split("\r\n")
    assert lines[:2] == [
        "pr,sha,told_at,at,outcome,wrong,hours,policy,sentences",
        f"7,{head(7)},2026-11-20T12:00:00+00:00,2026-11-20T12:42:00+00:00,blocked,green_again,0.7,0,"
        "1 new failure of 1 red test.",
    ]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({}, "repository: send owner/name."),
        ({"repository": FEN, "days": "x"}, "days: saw 'x', send 1 to 90."),
        ({"repository": FEN, "days": "0"}, "days: saw 0, send 1 to 90."),
        ({"repository": FEN, "days": "91"}, "days: saw 91, send 1 to 90."),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(
    lately: Field, client: Client, query: dict[str, str], says: str
) -> None:
    answer = client.get("/api/v1/gate/replay/", query)
    assert (answer.status_code, answer.json()["detail"]) == (400, says)


def test_below_l2_it_is_for_the_platforms_members(lately: Field, client: Client) -> None:
    Repository.objects.filter(full_name=FEN).update(level=1)
    api = {"repository": FEN}
    assert [client.get(URL).status_code, client.get("/api/v1/gate/replay/", api).status_code] == [404, 404]
    client.force_login(member_of(lately.fen.platform))
    assert [client.get(URL).status_code, client.get("/api/v1/gate/replay/", api).status_code] == [200, 200]
    Repository.objects.filter(full_name=FEN).update(level=0)
    assert client.get(URL).status_code == 404
