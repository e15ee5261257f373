"""The protocol's tables, pure."""

import datetime
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.relay import policy
from apps.relay.enums import Answer, Bucket, Flag, JobStatus
from apps.relay.policy import Counts, Report, Row, State

START = Report(JobStatus.IN_PROGRESS)
GREEN = Report(JobStatus.COMPLETED, "success", Counts(3, 0, 1, 4))
RED = Report(JobStatus.COMPLETED, "failure", Counts(2, 1, 1, 4))
GREEN_OTHER_COUNTS = Report(JobStatus.COMPLETED, "success", Counts(3, 0, 2, 5))


def test_the_matrix_has_a_cell_for_every_state_and_report_that_can_meet() -> None:
    states = {
        policy.NOTHING: State(),
        policy.STARTED: State(JobStatus.IN_PROGRESS, start_seen=True),
        policy.ENDED: State(JobStatus.COMPLETED, "success", GREEN.counts, start_seen=True),
        policy.ENDED_UNSEEN_START: State(JobStatus.COMPLETED, "success", GREEN.counts),
        policy.INFERRED: State(JobStatus.COMPLETED, "timed_out", start_seen=True, is_inferred=True),
    }
    met = {
        (policy.state_name(state), policy.incoming_name(state, report))
        for state, report in itertools.product(states.values(), (START, GREEN, RED, GREEN_OTHER_COUNTS))
    }
    assert met == set(policy.MATRIX)
    assert {policy.state_name(state): name for name, state in states.items()} == {name: name for name in states}


@pytest.mark.parametrize(
    ("state", "report", "status", "answer", "add", "remove"),
    [
        (State(), START, JobStatus.IN_PROGRESS, Answer.APPLIED, (), ()),
        (State(), GREEN, JobStatus.COMPLETED, Answer.APPLIED, (Flag.START_LOST,), ()),
        (State(JobStatus.IN_PROGRESS, start_seen=True), START, None, Answer.DUPLICATE, (), ()),
        (State(JobStatus.IN_PROGRESS, start_seen=True), RED, JobStatus.COMPLETED, Answer.APPLIED, (), ()),
        (State(JobStatus.COMPLETED, "success", GREEN.counts, None, True), START, None, Answer.DUPLICATE, (), ()),
        (
            State(JobStatus.COMPLETED, "success", GREEN.counts),
            START,
            None,
            Answer.LATE,
            (Flag.LATE_START,),
            (Flag.START_LOST,),
        ),
        (State(JobStatus.COMPLETED, "success", GREEN.counts, None, True), GREEN, None, Answer.DUPLICATE, (), ()),
        (State(JobStatus.COMPLETED, "success", GREEN.counts), GREEN, None, Answer.DUPLICATE, (), ()),
        (State(JobStatus.COMPLETED, "success", GREEN.counts, None, True), RED, None, Answer.CONFLICT, (), ()),
        (State(JobStatus.COMPLETED, "success", GREEN.counts), GREEN_OTHER_COUNTS, None, Answer.CONFLICT, (), ()),
        (State(JobStatus.COMPLETED, "timed_out", Counts(), None, True, True), START, None, Answer.DUPLICATE, (), ()),
        (
            State(JobStatus.COMPLETED, "timed_out", Counts(), None, True, True),
            GREEN,
            JobStatus.COMPLETED,
            Answer.APPLIED,
            (),
            (Flag.INFERRED, Flag.UNHEARD),
        ),
    ],
)
def test_each_cell(
    state: State,
    report: Report,
    status: JobStatus | None,
    answer: Answer,
    add: tuple[Flag, ...],
    remove: tuple[Flag, ...],
) -> None:
    row = policy.decide(state, report)
    assert (row.status, row.answer, row.add, row.remove) == (status, answer, add, remove)


def test_an_event_of_one_final_callback_expects_no_start() -> None:
    assert policy.decide(State(), GREEN, expects_start=False).add == ()


@given(st.lists(st.sampled_from([START, GREEN, RED, GREEN_OTHER_COUNTS]), max_size=12))
def test_whatever_comes_in_whatever_order_the_first_end_stands(reports: list[Report]) -> None:
    state, ends = State(), [report for report in reports if report.status is JobStatus.COMPLETED]
    for report in reports:
        state = _after(state, report, policy.decide(state, report))
    expected = ends[0] if ends else Report(JobStatus.IN_PROGRESS)
    assert (state.conclusion, state.counts) == (expected.conclusion, expected.counts)
    assert (state.status is JobStatus.COMPLETED) == bool(ends)
    assert state.start_seen == (START in reports)


def _after(state: State, report: Report, row: Row) -> State:
    if row.answer is Answer.APPLIED:
        is_start = report.status is JobStatus.IN_PROGRESS
        return State(row.status, report.conclusion, report.counts, None, is_start or state.start_seen)
    if row.answer is Answer.LATE:
        return State(state.status, state.conclusion, state.counts, None, True)
    return state


def test_buckets_by_equality() -> None:
    assert policy.BUCKETS == {
        "success": Bucket.SUCCESS,
        "failure": Bucket.FAILURE,
        "startup_failure": Bucket.FAILURE,
        "timed_out": Bucket.TIMED_OUT,
        "cancelled": Bucket.CANCELLED,
        "neutral": Bucket.NEUTRAL,
        "skipped": Bucket.NEUTRAL,
        "stale": Bucket.NEUTRAL,
        "action_required": Bucket.NEUTRAL,
    }


@pytest.mark.parametrize(
    ("conclusion", "failed", "bucket"),
    [
        ("success", 0, Bucket.SUCCESS),
        ("success", None, Bucket.SUCCESS),
        ("success", 1, Bucket.CONTRADICTED),
        ("failure", 0, Bucket.FAILURE),
        ("cancelled", 7, Bucket.CANCELLED),
    ],
)
def test_a_success_with_failed_tests_is_never_green(conclusion: str, failed: int | None, bucket: Bucket) -> None:
    assert policy.bucket_of(conclusion, Counts(failed=failed)) is bucket


def test_trust_is_per_figure() -> None:
    assert policy.trust_of("success") == {
        "identity": "verified",
        "timing": "self-reported",
        "conclusion": "self-reported",
        "counts": "self-reported",
    }
    assert policy.trust_of("contradicted") == {
        "identity": "verified",
        "timing": "self-reported",
        "conclusion": "contradicted",
        "counts": "contradicted",
    }


@pytest.mark.parametrize(
    ("facts", "labels"),
    [
        ({"bucket": "success", "verdict": "verified"}, ("self-reported", "verified", "self-reported")),
        ({"bucket": "success", "verdict": "unverifiable"}, ("self-reported", "self-reported", "self-reported")),
        ({"bucket": "contradicted", "verdict": "contradicted"}, ("self-reported", "contradicted", "self-reported")),
        (
            {"bucket": "contradicted", "verdict": "contradicted", "failed": 3},
            ("self-reported", "contradicted", "contradicted"),
        ),
        (
            {"bucket": "contradicted", "verdict": "verified", "failed": 3},
            ("self-reported", "contradicted", "contradicted"),
        ),
        ({"bucket": "timed_out", "flags": ["inferred"]}, ("self-reported", "measured", "self-reported")),
        ({"bucket": "success", "flags": ["absurd_times"]}, ("contradicted", "self-reported", "self-reported")),
    ],
)
def test_trust_of_timing_conclusion_and_counts(facts: dict[str, Any], labels: tuple[str, str, str]) -> None:
    trust = policy.trust_of(**facts)
    assert (trust["timing"], trust["conclusion"], trust["counts"]) == labels
    assert trust["identity"] == "verified"


@pytest.mark.parametrize(
    ("started", "completed", "is_absurd"),
    [
        (None, None, False),
        (-60, 0, False),
        (-60, 599, False),
        (-60, 601, True),
        (601, None, True),
        (-3 * 86_400 + 1, 0, False),
        (-3 * 86_400 - 1, 0, True),
        (0, -1, True),
        (None, -3 * 86_400 - 1, True),
    ],
)
def test_absurd_times(started: int | None, completed: int | None, is_absurd: bool) -> None:
    now = datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)
    start, end = (None if s is None else now + datetime.timedelta(seconds=s) for s in (started, completed))
    assert policy.flags_of_times(start, end, now) == ((Flag.ABSURD_TIMES,) if is_absurd else ())


def test_a_provenance_once_confirmed_stays_so() -> None:
    order = ["", "not_echoed", "expired", "confirmed"]
    for known, shown in itertools.product(order, order):
        assert policy.stronger_provenance(known, shown) == order[max(order.index(known), order.index(shown))]


@pytest.mark.parametrize(
    ("event", "action", "is_dispatched"),
    [
        ("pull_request", "opened", True),
        ("pull_request", "reopened", True),
        ("pull_request", "synchronize", True),
        ("pull_request", "closed", True),
        ("pull_request", "labeled", False),
        ("pull_request", "edited", False),
        ("pull_request", None, False),
        ("push", None, True),
        ("issues", "opened", False),
    ],
)
def test_what_is_dispatched(event: str, action: str | None, is_dispatched: bool) -> None:
    assert policy.is_dispatched(event, action) is is_dispatched


@pytest.mark.parametrize(
    ("events", "event", "takes_part"),
    [
        (["pull_request", "nightly"], "pull_request", True),
        (["pull_request"], "push", True),
        (["nightly"], "pull_request", False),
        (["nightly"], "push", False),
        ([], "push", False),
    ],
)
def test_push_counts_as_pull_request(events: list[str], event: str, takes_part: bool) -> None:
    assert policy.participates(events, event) is takes_part
