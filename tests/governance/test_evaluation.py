"""Criteria against facts, pure: what is met, what is not, what has no result, and when it could be."""

import datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.governance.evaluation import DAY, Facts, Refusals, Verdict, evaluate
from apps.policies.policy import SHIPPED, Policy, Use
from apps.results.metrics import Counted

TODAY = datetime.date(2026, 9, 28)
NOW = datetime.datetime(2026, 9, 28, 1, tzinfo=datetime.UTC)


def day(*, success: int = 10, failure: int = 0, timed_out: int = 0, **values: Any) -> Counted:
    """A good day: ten jobs in two runs, all in time and answered."""
    jobs = success + failure + timed_out
    given: dict[str, Any] = {"timed": jobs, "queued": jobs, "queue_seconds": 60 * jobs, "runs": (3_600, 5_400)}
    given |= {"sent": 2, "answered": 2, "first_ended": jobs, "first_success": success}
    buckets = {"success": success, "failure": failure, "timed_out": timed_out}
    return Counted(buckets=buckets, **(given | values))


def days(count: int, *, then: dict[int, Counted] | None = None) -> dict[datetime.date, Counted]:
    """So many good days that end yesterday; `then` puts another in, by how many days ago it was."""
    good = {TODAY - back * DAY: day() for back in range(1, count + 1)}
    return good | {TODAY - back * DAY: other for back, other in (then or {}).items()}


def facts(**values: Any) -> Facts:
    """A repository that has been at L2 for 40 days and does well."""
    given: dict[str, Any] = {
        "days": days(40),
        "tenure": {2: Fraction(40)},
        "answered_at": NOW,
        "asked_at": NOW - DAY,
        "level_since": NOW - 40 * DAY,
        "verified": 140,
        "ended": 140,
    }
    return Facts(today=TODAY, now=NOW, **(given | values))


def results(level: int, use: Use, known: Facts, **values: Any) -> dict[str, tuple[str, str, datetime.date | None]]:
    """By measure: verdict, value as shown, and when it could be met."""
    found = evaluate(level, use, policy=SHIPPED, facts=known, **values).results
    return {one.criterion.measure: (one.verdict.value, one.shown, one.possible_on) for one in found}


def test_who_does_well_for_long_enough_meets_all_of_l3() -> None:
    found = evaluate(3, Use.RISE, policy=SHIPPED, facts=facts())
    assert results(3, Use.RISE, facts()) == {
        "tenure_days": ("met", "40 days", None),
        "data_days": ("met", "30 days", None),
        "e2e_seconds_p50": ("met", "1 h", None),
        "overrun_rate": ("met", "0 %", None),
        "avg_queue_seconds": ("met", "1 min", None),
        "timeout_rate": ("met", "0 %", None),
        "pass_rate": ("met", "100 %", None),
        "answer_rate": ("met", "100 %", None),
        "runs": ("met", "28", None),
    }
    assert (found.verdict, found.sentence) == (Verdict.MET, "Meets all that L3 asks for.")
    sentences = {one.criterion.measure: one.sentence for one in found.results}
    assert sentences["pass_rate"] == "Job pass rate 100 %, asked >= 90 %, over 140 jobs."
    assert {one.reading.trust for one in found.results} == {"the hub's own", "verified"}


def test_nothing_is_met_by_silence() -> None:
    nothing = Facts(today=TODAY, now=NOW)
    found = evaluate(3, Use.RISE, policy=SHIPPED, facts=nothing)
    assert {one.criterion.measure: one.verdict.value for one in found.results} == {
        "tenure_days": "not met",
        "data_days": "not met",
        **dict.fromkeys(("e2e_seconds_p50", "overrun_rate", "avg_queue_seconds", "timeout_rate"), "no result"),
        **dict.fromkeys(("pass_rate", "answer_rate"), "no result"),
        "runs": "not met",
    }
    assert found.verdict is Verdict.NOT_MET
    assert next(one.shown for one in found.results if one.criterion.measure == "pass_rate") == "no data"


def test_a_nightly_only_backend_is_told_so_in_these_words() -> None:
    found = evaluate(3, Use.RISE, policy=SHIPPED, facts=facts(days={}, has_other_jobs=True))
    assert found.sentence == "Not eligible: no PR jobs."
    assert {one.verdict.value for one in found.results if one.criterion.measure in ("pass_rate", "runs")} == {
        "no result"
    }


def test_who_had_pr_jobs_before_the_window_is_not_told_that_there_are_none() -> None:
    quiet = facts(days={TODAY - 20 * DAY: day()}, has_other_jobs=True)
    found = evaluate(3, Use.STAY, policy=SHIPPED, facts=quiet)
    assert "no PR jobs" not in found.sentence
    assert {one.reading.why for one in found.results if one.reading.value is None} == {"no data in 7 days"}


def test_the_window_is_fixed_and_today_is_not_in_it() -> None:
    bad = day(success=0, failure=90)
    assert results(3, Use.RISE, facts(days=days(40, then={0: bad})))["pass_rate"] == ("met", "100 %", None)
    assert results(3, Use.RISE, facts(days=days(40, then={15: bad})))["pass_rate"] == ("met", "100 %", None)
    with_bad = results(3, Use.RISE, facts(days=days(40, then={14: bad})))["pass_rate"]
    assert with_bad == ("not met", "59.09 %", TODAY + DAY)


def test_when_it_could_be_met_is_when_the_bad_day_has_left_or_the_time_has_passed() -> None:
    bad = day(success=0, failure=90)
    assert results(3, Use.RISE, facts(days=days(40, then={5: bad})))["pass_rate"][2] == TODAY + 10 * DAY
    young = facts(days=days(10), tenure={2: Fraction(99, 10)})
    found = results(3, Use.RISE, young)
    assert found["tenure_days"] == ("not met", "9.9 days", TODAY + 21 * DAY)
    assert found["data_days"] == ("not met", "10 days", TODAY + 4 * DAY)
    assert evaluate(3, Use.RISE, policy=SHIPPED, facts=young).possible_on == TODAY + 21 * DAY


def test_exactly_one_percent_of_timeouts_is_too_many() -> None:
    def rate(timed_out: int) -> str:
        rows = {TODAY - DAY: day(success=1_000 - timed_out, timed_out=timed_out)}
        return results(3, Use.RISE, facts(days=rows))["timeout_rate"][0]

    assert [rate(9), rate(10)] == ["met", "not met"]


def test_staying_has_thresholds_of_its_own_over_seven_days() -> None:
    middling = {TODAY - back * DAY: day(success=89, failure=11) for back in range(1, 8)}
    assert results(3, Use.STAY, facts(days=middling))["pass_rate"] == ("met", "89 %", None)
    assert results(3, Use.RISE, facts(days=middling))["pass_rate"][0] == "not met"


def test_silence_is_days_since_an_answer_while_something_was_sent() -> None:
    def silent(**values: Any) -> tuple[str, str, datetime.date | None]:
        return results(2, Use.STAY, facts(**values))["silent_days"]

    assert silent(answered_at=NOW - 8 * DAY, asked_at=NOW - DAY) == ("not met", "8 days", None)
    assert silent(answered_at=NOW - 8 * DAY, asked_at=NOW - 9 * DAY) == ("met", "0 days", None)
    assert silent(answered_at=None, asked_at=NOW - DAY, level_since=NOW - 7 * DAY) == ("not met", "7 days", None)
    assert silent(answered_at=None, asked_at=None) == ("met", "0 days", None)


def test_l2_asks_for_pairs_and_few_refusals() -> None:
    known = facts(pairs={TODAY: 2, TODAY - 30 * DAY: 9}, refusals=Refusals(1, 10, TODAY - 14 * DAY))
    assert results(2, Use.RISE, known) == {
        "callback_pairs": ("met", "2", None),
        "refused_share": ("not met", "10 %", None),
    }
    assert results(2, Use.RISE, facts())["refused_share"] == ("no result", "no data", None)


def test_evidence_is_met_by_a_proposal_that_brings_it_and_by_nothing_else() -> None:
    assert results(4, Use.RISE, facts())["compatibility_card"] == ("no result", "no data", None)
    brought = results(4, Use.RISE, facts(), shown_by=["compatibility_card"])
    assert brought["compatibility_card"] == ("met", "no data", None)


def test_l4_reads_oncalls_and_the_replay() -> None:
    known = facts(oncalls=("a", "b"), replayed={TODAY - DAY: (1, 100), TODAY - 20 * DAY: (50, 50)})
    found = results(4, Use.RISE, known)
    assert (found["oncalls"], found["wrongly_blocked_rate"]) == (("met", "2", None), ("met", "1 %", None))
    assert results(4, Use.RISE, facts())["wrongly_blocked_rate"][0] == "no result"
    assert results(4, Use.STAY, facts(trips={TODAY: 3}))["breaker_trips"] == ("not met", "3", None)
    assert results(4, Use.STAY, facts(trips={}))["breaker_trips"] == ("met", "0", None)


def test_a_waiver_lets_one_criterion_stand_and_stays_visible() -> None:
    short = facts(tenure={2: Fraction(12)})
    found = evaluate(3, Use.RISE, policy=SHIPPED, facts=short, waivers={"L3.rise.tenure_days": "known for years"})
    assert found.verdict is Verdict.MET
    tenure = found.results[0]
    assert (tenure.verdict, tenure.stands, tenure.waiver) == (Verdict.NOT_MET, True, "known for years")
    assert tenure.written()["waiver"] == "known for years"


def test_it_is_written_with_exact_numbers() -> None:
    found = evaluate(3, Use.RISE, policy=SHIPPED, facts=facts(days=days(40, then={1: day(success=2, failure=1)})))
    row = next(one.written() for one in found.results if one.criterion.measure == "pass_rate")
    assert row == {
        "criterion": "L3.rise.pass_rate",
        "asks": ">= 90 %",
        "window_days": 14,
        "value": "132/133",
        "shown": "99.25 %",
        "rows": 133,
        "counts": "jobs",
        "trust": "verified",
        "verdict": "met",
        "sentence": "Job pass rate 99.25 %, asked >= 90 %, over 133 jobs.",
        "possible_on": None,
        "waiver": "",
    }


def test_how_far_conclusions_are_known_is_said() -> None:
    trusts = [facts(verified=verified, ended=140).trust for verified in (0, 70, 140)]
    assert trusts == ["self-reported", "verified 70 of 140", "verified"]
    assert facts(verified=0, ended=0).trust == "self-reported"


counts = st.integers(0, 30)


@given(success=counts, failure=counts, timed_out=counts, level=st.sampled_from([3, 4]), use=st.sampled_from(Use))
def test_a_better_figure_never_lowers_a_level(success: int, failure: int, timed_out: int, level: int, use: Use) -> None:
    """One more success in place of a failure or a timeout: what was met is met still."""

    def met(*numbers: int) -> set[str]:
        worst = dict(zip(("success", "failure", "timed_out"), numbers, strict=True))
        known = facts(days={TODAY - back * DAY: day(**worst) for back in range(1, 61)})
        found = evaluate(level, use, policy=SHIPPED, facts=known)
        return {one.criterion.key for one in found.results if one.verdict is Verdict.MET}

    before = met(success, failure, timed_out)
    if failure:
        assert before <= met(success + 1, failure - 1, timed_out)
    if timed_out:
        assert before <= met(success + 1, failure, timed_out - 1)


def test_a_level_without_criteria_gives_no_result() -> None:
    empty = Policy((), SHIPPED.handling, SHIPPED.limits)
    assert evaluate(2, Use.STAY, policy=empty, facts=facts()).verdict is Verdict.NO_RESULT


@pytest.mark.parametrize("missing", ["answered", "runs"])
def test_too_few_data_never_pass(missing: str) -> None:
    kinds: dict[str, dict[str, Any]] = {"answered": {"sent": 0, "answered": 0}, "runs": {"runs": (3_600,)}}
    few = kinds[missing]
    found = results(3, Use.RISE, facts(days={TODAY - back * DAY: day(**few) for back in range(1, 15)}))
    measure = {"answered": "answer_rate", "runs": "runs"}[missing]
    assert found[measure][0] == {"answered": "no result", "runs": "not met"}[missing]
