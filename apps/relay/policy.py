"""The rules of the protocol as tables and pure functions over them. /policy/ prints them.

Nothing here reads a clock or a database.
"""

import dataclasses
import datetime
from collections.abc import Iterable
from dataclasses import dataclass, field

from apps.relay.enums import Answer, Bucket, Flag, JobStatus

# --- events -----------------------------------------------------------------------------------------------------

PULL_REQUEST, PUSH, NIGHTLY, PERIODIC = "pull_request", "push", "nightly", "periodic"
DISPATCHED_EVENTS = (PULL_REQUEST, PUSH)
# Started by the downstream itself: one completed callback, no dispatch before it, informational.
UNDISPATCHED_EVENTS = (NIGHTLY, PERIODIC)


@dataclass(frozen=True)
class WebhookRule:
    """`action` is None where the event has none. Anything without a row is ignored."""

    event: str
    action: str | None
    effect: str


WEBHOOK_RULES: tuple[WebhookRule, ...] = (
    WebhookRule(PULL_REQUEST, "opened", "dispatched"),
    WebhookRule(PULL_REQUEST, "reopened", "dispatched"),
    WebhookRule(PULL_REQUEST, "synchronize", "dispatched"),
    WebhookRule(PULL_REQUEST, "closed", "dispatched"),
    WebhookRule(PUSH, None, "dispatched, every ref"),
)
SUPPORTED_EVENTS = frozenset(rule.event for rule in WEBHOOK_RULES)
_DISPATCHED = frozenset((rule.event, rule.action) for rule in WEBHOOK_RULES)


def is_dispatched(event: str, action: str | None) -> bool:
    """Whether a webhook of this event and action is sent on to downstream repositories."""
    return (event, action) in _DISPATCHED


def participates(events: Iterable[str], event: str) -> bool:
    """Whether a repository that takes part in `events` is sent this webhook event. `push` counts as pull_request."""
    return (PULL_REQUEST if event == PUSH else event) in events


# --- conclusions and buckets ------------------------------------------------------------------------------------

# GitHub's conclusions, and where a job with one counts.
BUCKETS: dict[str, Bucket] = {
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


@dataclass(frozen=True)
class Counts:
    """Test counts as the downstream reports them. None: not reported, which is not zero."""

    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    total: int | None = None


def flags_of(counts: Counts) -> tuple[Flag, ...]:
    """What the counts of an ended job say against themselves: more parts than the whole."""
    parts = sum(part or 0 for part in (counts.passed, counts.failed, counts.skipped))
    return (Flag.COUNTS_DIFFER,) if counts.total is not None and parts > counts.total else ()


def bucket_of(conclusion: str, counts: Counts) -> Bucket:
    """Where an ended job counts. A success with failed tests contradicts itself and is never green."""
    bucket = BUCKETS[conclusion]
    if bucket is Bucket.SUCCESS and counts.failed:
        return Bucket.CONTRADICTED
    return bucket


# Worst first: what one word for several jobs says.
WORST = (
    Bucket.CONTRADICTED,
    Bucket.FAILURE,
    Bucket.TIMED_OUT,
    Bucket.CANCELLED,
    Bucket.IN_PROGRESS,
    Bucket.NEUTRAL,
    Bucket.SUCCESS,
)


def worst_bucket(buckets: Iterable[str]) -> str | None:
    """The worst of several jobs' buckets; None of none."""
    present = set(buckets)
    return next((bucket.value for bucket in WORST if bucket in present), None)


# --- trust ------------------------------------------------------------------------------------------------------

VERIFIED, MEASURED, SELF_REPORTED, CONTRADICTED = "verified", "measured", "self-reported", "contradicted"
RELAY_VERIFIED = "relay-verified"
# What a flag says about a figure, over what the bucket says.
TRUST_BY_FLAG: dict[str, dict[str, str]] = {
    Flag.RELAYED: {"identity": RELAY_VERIFIED},
    Flag.IMPORTED: {"identity": RELAY_VERIFIED},
}


def trust_of(bucket: str, flags: Iterable[str] = ()) -> dict[str, str]:
    """How far each figure of a job can be trusted: identity, timing, conclusion, counts.

    Identity is proved by the signed token, or is the relay's word where the relay passed it on. The rest is the
    downstream's word: timing is its own clock's, and a conclusion that its own counts contradict is labelled so.
    """
    word = CONTRADICTED if bucket == Bucket.CONTRADICTED else SELF_REPORTED
    trust = {"identity": VERIFIED, "timing": SELF_REPORTED, "conclusion": word, "counts": word}
    for flag in flags:
        trust |= TRUST_BY_FLAG.get(flag, {})
    return trust


# --- the job's state machine ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """The part of a callback that the state machine reads."""

    status: JobStatus
    conclusion: str = ""
    counts: Counts = field(default_factory=Counts)
    started_at: datetime.datetime | None = None
    completed_at: datetime.datetime | None = None


@dataclass(frozen=True)
class State:
    """What is stored of a job. `status` is None while there is no row."""

    status: JobStatus | None = None
    conclusion: str = ""
    counts: Counts = field(default_factory=Counts)
    started_at: datetime.datetime | None = None
    start_seen: bool = False


@dataclass(frozen=True)
class Row:
    """One cell of the matrix: `status` after it (None: as before), the answer, the flags added and removed."""

    status: JobStatus | None
    answer: Answer
    add: tuple[Flag, ...] = ()
    remove: tuple[Flag, ...] = ()
    why: str = ""


NOTHING, STARTED, ENDED, ENDED_UNSEEN_START = "no row", "in progress", "completed", "completed, start not seen"
START, END, SAME_END, OTHER_END = "in_progress", "completed", "completed, same outcome", "completed, other outcome"

MATRIX: dict[tuple[str, str], Row] = {
    (NOTHING, START): Row(JobStatus.IN_PROGRESS, Answer.APPLIED, why="the job has begun"),
    (NOTHING, END): Row(
        JobStatus.COMPLETED, Answer.APPLIED, add=(Flag.START_LOST,), why="the end counts even if the start was lost"
    ),
    (STARTED, START): Row(None, Answer.DUPLICATE, why="a retry"),
    (STARTED, END): Row(JobStatus.COMPLETED, Answer.APPLIED, why="the job has ended"),
    (ENDED, START): Row(None, Answer.DUPLICATE, why="a retry of the start, after the end"),
    (ENDED_UNSEEN_START, START): Row(
        None,
        Answer.LATE,
        add=(Flag.LATE_START,),
        remove=(Flag.START_LOST,),
        why="the start overtaken by the end fills in the start, nothing else",
    ),
    (ENDED, SAME_END): Row(None, Answer.DUPLICATE, why="a retry"),
    (ENDED_UNSEEN_START, SAME_END): Row(None, Answer.DUPLICATE, why="a retry"),
    (ENDED, OTHER_END): Row(None, Answer.CONFLICT, why="the first final answer stands; the other is kept on record"),
    (ENDED_UNSEEN_START, OTHER_END): Row(
        None, Answer.CONFLICT, why="the first final answer stands; the other is kept on record"
    ),
}


def bucket_of_report(report: Report) -> Bucket:
    """Where a job counts after this report."""
    return bucket_of(report.conclusion, report.counts) if report.status is JobStatus.COMPLETED else Bucket.IN_PROGRESS


def state_name(state: State) -> str:
    """The matrix's word for what is stored."""
    if state.status is None:
        return NOTHING
    if state.status is JobStatus.IN_PROGRESS:
        return STARTED
    return ENDED if state.start_seen else ENDED_UNSEEN_START


def incoming_name(state: State, report: Report) -> str:
    """The matrix's word for what comes in. Two ends are the same when conclusion and test counts are."""
    if report.status is JobStatus.IN_PROGRESS:
        return START
    if state.status is not JobStatus.COMPLETED:
        return END
    same = (report.conclusion, report.counts) == (state.conclusion, state.counts)
    return SAME_END if same else OTHER_END


def decide(state: State, report: Report, *, expects_start: bool = True) -> Row:
    """The cell for a stored state and an incoming report.

    `expects_start` is False for events that send one final callback: then a missing start is no flag.
    """
    row = MATRIX[state_name(state), incoming_name(state, report)]
    add = row.add if expects_start else ()
    if row.status is JobStatus.COMPLETED:
        add += flags_of(report.counts)
    return dataclasses.replace(row, add=add)
