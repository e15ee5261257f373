"""What holds of the rules whatever comes, and in whatever order; and a simulated field as the bench prints it."""

import datetime
import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from apps.quarantine import streaks
from apps.quarantine.enums import FlakeKind
from apps.quarantine.policy import HUB, UPSTREAM, Flake, Ran, entering, proof, seen, usual
from apps.quarantine.signs import Signs, Witness, contradicted
from bench import flakes_field

NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)

hours = st.integers(-500, 10).map(lambda hour: NOW + hour * HOUR)
few = st.integers(1, 4)
flakes = st.builds(
    lambda run, job, sha, at, is_on_main, is_in_incident: Flake(
        1, FlakeKind.RERUN, f"{run}", f"{run} {job}", f"{sha}", at, is_on_main, is_in_incident
    ),
    *(few, few, few, hours, st.booleans(), st.booleans()),
)
runs = st.builds(Ran, hours, st.booleans(), st.none() | st.integers(1, 50), st.booleans())


@given(st.lists(flakes).flatmap(lambda of: st.tuples(st.just(of), st.permutations(of))))
def test_order_of_arrival_does_not_matter_for_entering(given_flakes: Any) -> None:
    one, other = given_flakes
    for rules in (HUB, UPSTREAM):
        assert seen(one, rules, NOW) == seen(other, rules, NOW)


@given(st.lists(flakes))
def test_what_an_incident_shows_never_enters(of: list[Flake]) -> None:
    without = [flake for flake in of if not flake.is_in_incident]
    assert seen(of, HUB, NOW) == seen(without, HUB, NOW)
    assert entering({1: [flake for flake in of if flake.is_in_incident]}, {1: ""}, HUB, NOW) == []


@given(st.lists(flakes))
def test_what_may_not_enter_does_not(of: list[Flake]) -> None:
    assert entering({1: of}, {}, HUB, NOW) == []


@given(st.lists(runs).flatmap(lambda of: st.tuples(st.just(of), st.permutations(of))), st.none() | st.integers(1, 50))
def test_commit_order_counts_and_not_arrival_for_leaving(given_runs: Any, fixed_at: int | None) -> None:
    one, other = given_runs
    values: dict[str, Any] = {"fixed_at": fixed_at, "changed_at": NOW, "at": NOW}
    assert proof(one, HUB, **values) == proof(other, HUB, **values)


@given(st.lists(runs), st.integers(2, 50))
def test_a_run_before_the_fix_or_of_an_unknown_commit_proves_nothing(of: list[Ran], fixed_at: int) -> None:
    values: dict[str, Any] = {"fixed_at": fixed_at, "changed_at": NOW, "at": NOW}
    counted = [ran for ran in of if ran.place is not None and ran.place >= fixed_at]
    assert proof(of, HUB, **values) == proof(counted, HUB, **values)


looks = st.lists(st.tuples(few, st.sampled_from(["red", "green", "skipped"])), max_size=30)


@given(looks)
def test_a_streak_is_the_reds_since_the_last_pass_and_skips_change_nothing(of: list[tuple[int, str]]) -> None:
    found: dict[int, streaks.Red] = {}
    for number, (sha, how) in enumerate(of):
        red, green = ([1] if how == wanted else [] for wanted in ("red", "green"))
        found = streaks.advanced(found, streaks.Look(number, f"{sha}", NOW + number * HOUR, red, green))
    last_pass = max((number for number, (_, how) in enumerate(of) if how == "green"), default=-1)
    since = [(number, sha) for number, (sha, how) in enumerate(of) if how == "red" and number > last_pass]
    if not since:
        assert found == {}
        return
    changes = 1 + sum(one[1] != other[1] for one, other in itertools.pairwise(since))
    streak = found[1]
    assert (streak.since, streak.last, streak.runs, streak.commits) == (since[0][0], since[-1][0], len(since), changes)


def signs(red: list[int], green: list[int]) -> Signs:
    return Signs(np.array(red, np.int64), np.array([], np.int64), np.array(green, np.int64))


def test_each_red_test_has_one_witness_and_another_attempt_is_the_nearest() -> None:
    others = [Witness(signs([], [1, 2, 3]), is_other_attempt=False), Witness(signs([4], [2]), is_other_attempt=True)]
    found = [(place, kind, tests.tolist()) for place, kind, tests in contradicted(np.array([1, 2, 4]), others)]
    assert found == [(1, FlakeKind.ATTEMPTS, [2]), (0, FlakeKind.REPORTS, [1])]


def test_usual_is_the_median_and_one_incident_does_not_move_it() -> None:
    assert (usual([]), usual([3]), usual([2, 3, 900, 2, 3])) == (None, 3.0, 3.0)
    assert usual([900] * 30 + [1] * 20) == 1.0


def test_in_a_simulated_field_no_regression_enters_and_what_is_often_flaky_does() -> None:
    result = flakes_field.simulated(2_001, HUB)
    of = result.field
    assert result.flagged - of.flaky.keys() == set()
    assert {test for test, chance in of.flaky.items() if chance > 0.08} - result.flagged == set()
    assert result.raised - of.regressed.keys() == set()
    assert len(result.raised) > len(of.regressed) / 2
