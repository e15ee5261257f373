"""The rules of the protocol as tables and pure functions over them. /policy/ prints them.

Nothing here reads a clock or a database.
"""

import dataclasses
import datetime
from collections.abc import Iterable
from dataclasses import dataclass, field

from apps.relay.enums import Answer, Bucket, Flag, JobStatus, Provenance, Verdict

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


def trust_of(bucket: str, *, verdict: str = "", failed: int | None = None, flags: Iterable[str] = ()) -> dict[str, str]:
    """How far each figure of a job can be trusted: identity, timing, conclusion, counts.

    Identity is proved by the signed token. The rest is the downstream's word, as long as nothing speaks for it or
    against it: GitHub's record or the job's own counts for the conclusion, the hub's clock for the times.
    """
    flags, conclusion = set(flags), SELF_REPORTED
    if bucket == Bucket.CONTRADICTED:
        conclusion = CONTRADICTED
    elif Flag.INFERRED in flags:
        conclusion = MEASURED
    elif verdict == Verdict.VERIFIED:
        conclusion = VERIFIED
    # Where GitHub contradicts the conclusion, the counts are at fault only if they do so too.
    are_counts_at_fault = bucket == Bucket.CONTRADICTED and (verdict != Verdict.CONTRADICTED or bool(failed))
    return {
        "identity": VERIFIED,
        "timing": CONTRADICTED if Flag.ABSURD_TIMES in flags else SELF_REPORTED,
        "conclusion": conclusion,
        "counts": CONTRADICTED if are_counts_at_fault else SELF_REPORTED,
    }


# The more a label says, the later it stands: what one callback of a job has shown, another cannot take back.
_PROVENANCES = ("", Provenance.NOT_ECHOED, Provenance.EXPIRED, Provenance.CONFIRMED)


def stronger_provenance(known: str, shown: str) -> str:
    """What is known of a job's provenance after a callback that showed `shown`."""
    return str(max(known, shown, key=_PROVENANCES.index))


# --- times ------------------------------------------------------------------------------------------------------

# How far a downstream's clock may be off, and how long ago what it reports may have happened: a delivery's state is
# kept for three days.
CLOCK_OFF = datetime.timedelta(minutes=10)
STATE_KEPT = datetime.timedelta(days=3)


def flags_of_times(
    started_at: datetime.datetime | None, completed_at: datetime.datetime | None, now: datetime.datetime
) -> tuple[Flag, ...]:
    """What is wrong with reported times: in the future, longer ago than the state is kept, or the end first.

    They are kept as they were said. No window and no figure of the hub reads them.
    """
    told = [moment for moment in (started_at, completed_at) if moment is not None]
    is_backwards = len(told) == 2 and told[1] < told[0]
    is_far = any(moment - now > CLOCK_OFF or now - moment > STATE_KEPT for moment in told)
    return (Flag.ABSURD_TIMES,) if is_backwards or is_far else ()


# GitHub is asked about an ended job when its last steps should be over; then again, each time after twice as long.
FIRST_LOOK_UP = datetime.timedelta(minutes=1)
LOOKUPS_MAX = 8

# A nightly that is half a day late is not silent yet.
SILENT_AFTER = datetime.timedelta(hours=36)


def silent_hours(last_callback_at: datetime.datetime | None, now: datetime.datetime) -> int | None:
    """For how many whole hours nothing was heard of a repository; None while that is no state, or before the first."""
    if last_callback_at is None or now - last_callback_at < SILENT_AFTER:
        return None
    return int((now - last_callback_at).total_seconds() // 3_600)


# How long a job may stay silent (seconds) before the hub ends it, where nothing else is declared: upstream's figure.
SILENT_LIMIT_SECONDS = 6 * 3_600
LIMIT_MIN_SECONDS, LIMIT_MAX_SECONDS = 600, int(STATE_KEPT.total_seconds())


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
    is_inferred: bool = False


@dataclass(frozen=True)
class Row:
    """One cell of the matrix: `status` after it (None: as before), the answer, the flags added and removed."""

    status: JobStatus | None
    answer: Answer
    add: tuple[Flag, ...] = ()
    remove: tuple[Flag, ...] = ()
    why: str = ""


NOTHING, STARTED, ENDED, ENDED_UNSEEN_START = "no row", "in progress", "completed", "completed, start not seen"
INFERRED = "completed, inferred"
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
    (INFERRED, START): Row(None, Answer.DUPLICATE, why="a retry of the start; the hub still waits for the end"),
    (INFERRED, END): Row(
        JobStatus.COMPLETED,
        Answer.APPLIED,
        remove=(Flag.INFERRED,),
        why="a real end replaces the one that the hub inferred",
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
    if state.is_inferred:
        return INFERRED
    return ENDED if state.start_seen else ENDED_UNSEEN_START


def incoming_name(state: State, report: Report) -> str:
    """The matrix's word for what comes in. Two ends are the same when conclusion and test counts are."""
    if report.status is JobStatus.IN_PROGRESS:
        return START
    if state.status is not JobStatus.COMPLETED or state.is_inferred:
        return END
    same = (report.conclusion, report.counts) == (state.conclusion, state.counts)
    return SAME_END if same else OTHER_END


def decide(state: State, report: Report, *, expects_start: bool = True, found: tuple[Flag, ...] = ()) -> Row:
    """The cell for a stored state and an incoming report.

    `expects_start` is False for events that send one final callback: then a missing start is no flag. `found` are
    flags that the caller has found besides.
    """
    row = MATRIX[state_name(state), incoming_name(state, report)]
    add = (*(row.add if expects_start else ()), *found)
    if row.status is JobStatus.COMPLETED:
        add += flags_of(report.counts)
    return dataclasses.replace(row, add=add)
