"""When a test is flaky, when it stops to be, and what may become of a quarantine. Pure."""

import datetime
from dataclasses import asdict, replace
from typing import Any

import pytest

from apps.quarantine.enums import FlakeKind, State, Verb
from apps.quarantine.policy import (
    EFFECTIVE,
    ENDED,
    HUB,
    OPEN,
    SHIPPED,
    TRANSITIONS,
    UPSTREAM,
    Flake,
    Ran,
    aggregated,
    budget,
    cap,
    is_incident,
    next_state,
    proof,
    rules_of,
    seen,
)

AT = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)


def ago(*, days: float = 0, hours: float = 0) -> datetime.datetime:
    return AT - datetime.timedelta(days=days, hours=hours)


def flake(run: str, sha: str, at: datetime.datetime, **fields: Any) -> Flake:
    return Flake(test=1, kind=FlakeKind.RERUN, run=run, job=f"{run}.1 test", sha=sha, at=at, **fields)


def test_two_runs_on_two_commits_enter() -> None:
    found = seen([flake("1", "a", ago(days=3)), flake("2", "b", ago(days=1))], HUB, AT)
    assert (found.jobs, found.runs, found.commits, found.newest, found.is_flaky) == (2, 2, 2, ago(days=1), True)


@pytest.mark.parametrize(
    "flakes",
    [
        [],
        [flake("1", "a", ago(days=1))],
        [flake("1", "a", ago(days=1)), flake("2", "a", ago(days=1))],
        [flake("1", "a", ago(days=1)), flake("2", "", ago(days=1))],
        [flake("1", "a", ago(days=1)), flake("2", "b", ago(days=15))],
        [flake("1", "a", ago(days=8)), flake("2", "b", ago(days=9))],
        [flake("1", "a", ago(days=1)), flake("2", "b", ago(days=1), is_in_incident=True)],
        [flake("1", "a", ago(days=1)), flake("2", "b", AT + datetime.timedelta(hours=1))],
    ],
    ids=["none", "one run", "one commit", "unnamed commit", "outside", "nothing new", "incident", "not yet"],
)
def test_what_does_not_enter(flakes: list[Flake]) -> None:
    assert not seen(flakes, HUB, AT).is_flaky


def test_upstream_more_than_two_distinct_jobs_on_main_within_six_hours_the_newest_within_five() -> None:
    jobs = [flake(str(number), "a", ago(hours=number), is_on_main=True) for number in (1, 3, 5)]
    assert seen(jobs, UPSTREAM, AT).is_flaky
    assert not seen(jobs[:2], UPSTREAM, AT).is_flaky
    assert not seen([*jobs[:2], jobs[0]], UPSTREAM, AT).is_flaky
    assert not seen([*jobs[:2], replace(jobs[2], is_on_main=False)], UPSTREAM, AT).is_flaky
    assert not seen([*jobs[:2], replace(jobs[2], at=ago(hours=6.5))], UPSTREAM, AT).is_flaky
    late = [replace(job, at=job.at - datetime.timedelta(hours=4.5)) for job in jobs[:1]]
    assert not seen(late * 3, UPSTREAM, AT).is_flaky


def test_upstream_more_than_four_of_one_file_are_one_record() -> None:
    files = (
        dict.fromkeys(range(5), "test_ops") | dict.fromkeys(range(5, 9), "test_nn") | dict.fromkeys(range(9, 20), "")
    )
    assert aggregated(files, UPSTREAM) == {"test_ops": [0, 1, 2, 3, 4]}


def test_upstream_leaves_after_150_green_and_no_red_over_seven_days_and_14_days_without_a_change() -> None:
    runs = [Ran(ago(days=number / 20), is_red=False, place=1_000 - number) for number in range(150)]
    long_ago = ago(days=14)
    assert proof(runs, UPSTREAM, fixed_at=None, changed_at=long_ago, at=AT).is_whole
    assert proof(runs[:149], UPSTREAM, fixed_at=None, changed_at=long_ago, at=AT).words == "1 more executed passes"
    newer = proof(runs, UPSTREAM, fixed_at=None, changed_at=ago(days=13), at=AT)
    assert newer.words == "1.0 more days without a change"
    close = [replace(run, at=ago(days=number / 100)) for number, run in enumerate(runs)]
    assert not proof(close, UPSTREAM, fixed_at=None, changed_at=long_ago, at=AT).is_whole


def test_commit_order_counts_not_arrival() -> None:
    passes = [Ran(ago(days=9 - number / 2), is_red=False, place=100 + number) for number in range(20)]
    older_red = Ran(ago(hours=1), is_red=True, place=99)
    newer_red = Ran(ago(days=20), is_red=True, place=110)
    unplaced = Ran(ago(days=1), is_red=True, place=None)
    found = proof([*passes, older_red, unplaced], HUB, fixed_at=100, changed_at=ago(days=9), at=AT)
    assert (found.passes, found.reds, found.words) == (20, 0, "")
    again = proof([*passes, newer_red], HUB, fixed_at=100, changed_at=ago(days=9), at=AT)
    assert (again.passes, again.reds, again.is_whole) == (9, 1, False)


def test_nothing_executed_proves_nothing() -> None:
    found = proof([], HUB, fixed_at=None, changed_at=ago(days=90), at=AT)
    assert found.words == "20 more executed passes; passes spread over 7.0 more days"


@pytest.mark.parametrize(
    ("size", "usual", "expected"), [(9, 0, False), (10, 0, True), (10, 3.4, False), (30, 10, True), (29, 10, False)]
)
def test_an_incident_is_large_and_much_larger_than_usual(size: int, usual: float, expected: bool) -> None:
    assert is_incident(size, usual, HUB) is expected


def test_every_state_is_open_or_ended_and_only_the_life_as_written_leads_on() -> None:
    assert set(OPEN) | set(ENDED) == set(State)
    assert set(EFFECTIVE) < set(OPEN)
    for (state, verb), after in TRANSITIONS.items():
        assert next_state(state, verb) is after
    # What has ended stays so; only what was released by proof may come back.
    assert {state for state, _ in TRANSITIONS if state in ENDED} == {State.RELEASED}
    # Nothing becomes effective but from a proposal, and no machine's verb is among those that do it.
    assert {verb for (state, verb), after in TRANSITIONS.items() if after in EFFECTIVE and state not in EFFECTIVE} == {
        Verb.PUT_IN_FORCE
    }


def test_shipped_rule_sets_can_be_kept_and_read() -> None:
    assert {key: rules_of(asdict(rules)) for key, rules in SHIPPED.items()} == SHIPPED


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"window": -1}, "window"),
        ({"newest": 10_000}, "newest"),
        ({"only_main": 1}, "only_main"),
        ({"enter_jobs": 1.5}, "enter_jobs"),
        ({"enter_jobs": True}, "enter_jobs"),
        ({"enter_jobs": 0}, "enter_jobs"),
        ({"cap_share": 2}, "cap_share"),
        ({"more": 1}, "more"),
        ({"expiry": "30"}, "expiry"),
    ],
)
def test_a_set_that_makes_no_sense_is_refused_by_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=f"^{field}: "):
        rules_of(asdict(HUB) | change)


def test_caps_and_budgets_grow_with_the_suite_and_never_vanish() -> None:
    assert [cap(tests, HUB) for tests in (0, 500, 600_000)] == [10, 10, 6_000]
    assert budget(500, HUB) == 10 * HUB.budget_days
