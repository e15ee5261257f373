"""The rules of the protocol as tables and pure functions over them. /policy/ prints them.

Nothing here reads a clock or a database.
"""

import dataclasses
import datetime
import fnmatch
import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from apps.relay.enums import Answer, Bucket, Flag, JobStatus, Provenance, Rule, Verdict

# --- events -----------------------------------------------------------------------------------------------------

PULL_REQUEST, PUSH, NIGHTLY, PERIODIC = "pull_request", "push", "nightly", "periodic"
DISPATCHED_EVENTS = (PULL_REQUEST, PUSH)
# Started by the downstream itself: one completed callback, no dispatch before it, informational.
UNDISPATCHED_EVENTS = (NIGHTLY, PERIODIC)


@dataclass(frozen=True)
class WebhookRule:
    """`action` is None where the event has none. Anything without a row is ignored.

    What is not `answered` tells downstreams to stop: nobody runs anything for it, so nobody waits for an answer.
    """

    event: str
    action: str | None
    effect: str
    answered: bool = True


WEBHOOK_RULES: tuple[WebhookRule, ...] = (
    WebhookRule(PULL_REQUEST, "opened", "dispatched"),
    WebhookRule(PULL_REQUEST, "reopened", "dispatched"),
    WebhookRule(PULL_REQUEST, "synchronize", "dispatched"),
    WebhookRule(PULL_REQUEST, "closed", "dispatched, no answer expected", answered=False),
    WebhookRule(PUSH, None, "dispatched, every ref"),
)
# What is sent to nobody and concerns check runs alone.
CHECK_RUN, CHECK_SUITE = "check_run", "check_suite"
CHECKS_LABEL = "ciflow/crcr/"
CHECK_RULES: tuple[WebhookRule, ...] = (
    WebhookRule(PULL_REQUEST, "labeled", f"check runs, where the label is {CHECKS_LABEL}<device>"),
    WebhookRule(PULL_REQUEST, "unlabeled", f"check runs, where the label is {CHECKS_LABEL}<device>"),
    WebhookRule(CHECK_RUN, "rerequested", "the failed jobs of its run are run again"),
    WebhookRule(CHECK_SUITE, "rerequested", "each run behind its check runs is run again"),
)
SUPPORTED_EVENTS = frozenset(rule.event for rule in (*WEBHOOK_RULES, *CHECK_RULES))
_DISPATCHED = frozenset((rule.event, rule.action) for rule in WEBHOOK_RULES)
# (event, action) of what is sent and never answered; an event without an action has "".
UNANSWERED = tuple((rule.event, rule.action or "") for rule in WEBHOOK_RULES if not rule.answered)


def is_dispatched(event: str, action: str | None) -> bool:
    """Whether a webhook of this event and action is sent on to downstream repositories."""
    return (event, action) in _DISPATCHED


def is_answered(event: str, action: str) -> bool:
    """Whether a downstream that was sent this is expected to answer. `action` as a Delivery has it."""
    return (event, action) not in UNANSWERED


_FOR_CHECKS = frozenset((rule.event, rule.action) for rule in CHECK_RULES)


def concerns_checks_alone(event: str, action: str | None, label: str) -> bool:
    """Whether a webhook is sent to nobody, yet changes check runs. `label` is the one that the webhook is about."""
    if (event, action) not in _FOR_CHECKS:
        return False
    return event != PULL_REQUEST or label.lower().startswith(CHECKS_LABEL)


def is_remembered(event: str, action: str | None) -> bool:
    """Whether a webhook leaves a row: of check runs and suites only what is handled, as every CI's come by."""
    return event not in (CHECK_RUN, CHECK_SUITE) or concerns_checks_alone(event, action, "")


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
# Ends that somebody has to look at: an oncall acknowledges them.
RED = (Bucket.FAILURE, Bucket.TIMED_OUT, Bucket.CONTRADICTED)
# How far off a red job's mending may be expected: later is no answer to who waits for it.
EXPECTED_WITHIN = datetime.timedelta(days=30)


@dataclass(frozen=True)
class Counts:
    """Test counts as the downstream reports them. None: not reported, which is not zero."""

    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    total: int | None = None

    def over(self, known: "Counts") -> "Counts":
        """These, and where they say nothing those that were known before."""
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(known), strict=True)
        return Counts(*(before if new is None else new for new, before in pairs))


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
CORROBORATED = "corroborated"
RELAY_VERIFIED = "relay-verified"
# What a flag says about a figure, over what the bucket says.
TRUST_BY_FLAG: dict[str, dict[str, str]] = {
    Flag.RELAYED: {"identity": RELAY_VERIFIED},
    Flag.IMPORTED: {"identity": RELAY_VERIFIED},
    Flag.ABSURD_TIMES: {"timing": CONTRADICTED},
}


def trust_of(bucket: str, *, verdict: str = "", failed: int | None = None, flags: Iterable[str] = ()) -> dict[str, str]:
    """How far each figure of a job can be trusted: identity, timing, conclusion, counts.

    Identity is proved by the signed token, or is the relay's word where the relay passed it on. The rest is the
    downstream's word, as long as nothing speaks for it or against it: GitHub's record, the job's own counts or the
    tests that it uploaded for the conclusion, the hub's clock for the times.
    """
    flags, conclusion = set(flags), SELF_REPORTED
    if bucket == Bucket.CONTRADICTED:
        conclusion = CONTRADICTED
    elif Flag.INFERRED in flags:
        conclusion = MEASURED
    elif verdict == Verdict.VERIFIED:
        conclusion = VERIFIED
    elif Flag.CORROBORATED in flags:
        conclusion = CORROBORATED
    # Where another record contradicts the conclusion, the counts are at fault only if they do so too.
    is_by_another = verdict == Verdict.CONTRADICTED or Flag.TESTS_CONTRADICT in flags
    are_counts_at_fault = bucket == Bucket.CONTRADICTED and (not is_by_another or bool(failed))
    stated = CORROBORATED if Flag.CORROBORATED in flags else SELF_REPORTED
    trust = {
        "identity": VERIFIED,
        "timing": SELF_REPORTED,
        "conclusion": conclusion,
        "counts": CONTRADICTED if are_counts_at_fault else stated,
    }
    for flag in flags:
        trust |= TRUST_BY_FLAG.get(flag, {})
    return trust


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

    @property
    def is_open(self) -> bool:
        """Whether the downstream has still to tell the end: one that the hub inferred is none."""
        return self.status is JobStatus.IN_PROGRESS or self.is_inferred


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
        remove=(Flag.INFERRED, Flag.UNHEARD),
        why="a real end replaces the one that the hub inferred",
    ),
}


def bucket_after(state: State, report: Report) -> Bucket:
    """Where a job of this state counts after this report."""
    if report.status is not JobStatus.COMPLETED:
        return Bucket.IN_PROGRESS
    return bucket_of(report.conclusion, report.counts.over(state.counts))


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
    """The matrix's word for what comes in. Two ends are the same when the conclusion is, and
    no test count is said to be another."""
    if report.status is JobStatus.IN_PROGRESS:
        return START
    if state.status is None or state.is_open:
        return END
    same = (report.conclusion, report.counts.over(state.counts)) == (state.conclusion, state.counts)
    return SAME_END if same else OTHER_END


def held(row: Row) -> Row:
    """The same cell for a caller whose repository has a new owner: what it changes is held, and what others have
    reported it does not touch. A conflict stays one."""
    if row.status is not None:
        return dataclasses.replace(row, answer=Answer.HELD, add=(*row.add, Flag.HELD))
    return row if row.answer is Answer.CONFLICT else Row(None, Answer.HELD, why=row.why)


def decide(state: State, report: Report, *, expects_start: bool = True, found: tuple[Flag, ...] = ()) -> Row:
    """The cell for a stored state and an incoming report.

    `expects_start` is False for events that send one final callback: then a missing start is no flag. `found` are
    flags that the caller has found besides.
    """
    row = MATRIX[state_name(state), incoming_name(state, report)]
    add = (*(row.add if expects_start else ()), *found)
    if row.status is JobStatus.COMPLETED:
        add += flags_of(report.counts.over(state.counts))
    return dataclasses.replace(row, add=add)


# --- who is sent an event ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Occasion:
    """What of a webhook decides who is sent it. `ref` is whole (`refs/heads/main`): what was pushed, or what a pull
    request is to be merged into. `labels` are the pull request's."""

    event: str
    action: str
    delivery_id: str
    ref: str = ""
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wishes:
    """What a listed repository takes part in. `listed` are the allowlist's words; empty `refs` or `labels` are any.

    `key` never changes. `maintenance_until` is the end of a maintenance window that is open now. `was_sent`: it was
    dispatched an earlier event of the same pull request.
    """

    key: str
    listed: tuple[str, ...]
    events: tuple[str, ...] = DISPATCHED_EVENTS
    refs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    sample_percent: int = 100
    maintenance_until: datetime.datetime | None = None
    was_sent: bool = False


@dataclass(frozen=True)
class NotSent:
    """Why a repository is not sent an event: the rule, and a sentence."""

    rule: Rule
    sentence: str


def takes_part(occasion: Occasion, wishes: Wishes) -> NotSent | None:
    """None: the repository is sent this event. Else the first rule, in PARTICIPATION's order, that keeps it back.

    Whoever was sent the beginning is sent what ends runs, whatever the rules say by then.
    """
    if wishes.was_sent and not is_answered(occasion.event, occasion.action):
        return None
    for rule, row in PARTICIPATION.items():
        if sentence := row.ask(occasion, wishes):
            return NotSent(rule, sentence)
    return None


def _listing(occasion: Occasion, wishes: Wishes) -> str:
    if participates(wishes.listed, occasion.event):
        return ""
    return f"the allowlist lists it for {', '.join(wishes.listed) or 'no event'} only"


def _event(occasion: Occasion, wishes: Wishes) -> str:
    return "" if occasion.event in wishes.events else f"it does not take part in {occasion.event} events"


def _ref(occasion: Occasion, wishes: Wishes) -> str:
    if not wishes.refs:
        return ""
    names = (occasion.ref, re.sub(r"^refs/(?:heads|tags)/", "", occasion.ref))
    if any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in wishes.refs):
        return ""
    return f"{occasion.ref or 'an unknown ref'} fits none of its refs: {', '.join(wishes.refs)}"


def _label(occasion: Occasion, wishes: Wishes) -> str:
    if not wishes.labels or occasion.event != PULL_REQUEST:
        return ""
    wanted = {label.lower() for label in wishes.labels}  # GitHub compares labels without case
    if wanted & {label.lower() for label in occasion.labels}:
        return ""
    return f"the pull request has none of its labels: {', '.join(wishes.labels)}"


def _sample(occasion: Occasion, wishes: Wishes) -> str:
    # What ends runs is nothing to run: it is not sampled.
    if not is_answered(occasion.event, occasion.action):
        return ""
    if sample_share(occasion.delivery_id, wishes.key) * 100 < wishes.sample_percent:
        return ""
    return f"it is not in the {wishes.sample_percent} % of events that the hub draws for it"


def _maintenance(occasion: Occasion, wishes: Wishes) -> str:
    until = wishes.maintenance_until
    return f"in announced maintenance until {until:%Y-%m-%d %H:%M} UTC" if until else ""


def sample_share(delivery_id: str, key: str) -> float:
    """Where a (delivery, repository) falls between 0 and 1: the same whoever asks how often, and nobody's choice."""
    digest = hashlib.sha256(f"{delivery_id}\n{key}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


@dataclass(frozen=True)
class ParticipationRule:
    """One reason why a repository is not sent an event: what it says, who chooses it, and the question itself."""

    text: str
    chosen_by: str
    ask: Callable[[Occasion, Wishes], str]


_MEMBERS = "members of its platform"
PARTICIPATION: dict[Rule, ParticipationRule] = {
    Rule.LISTING: ParticipationRule("the allowlist does not list the repository for it", "the allowlist", _listing),
    Rule.EVENT: ParticipationRule("an event that the repository does not take part in", _MEMBERS, _event),
    Rule.REF: ParticipationRule("a pushed ref, or a pull request's base, that fits none of its refs", _MEMBERS, _ref),
    Rule.LABEL: ParticipationRule("a pull request without any of its labels", _MEMBERS, _label),
    Rule.SAMPLE: ParticipationRule(
        "an event outside of its sample, drawn from delivery and repository; what only ends runs is not drawn",
        f"the share by {_MEMBERS}, which ones by the hub",
        _sample,
    ),
    Rule.MAINTENANCE: ParticipationRule("an event within an announced maintenance window", _MEMBERS, _maintenance),
}

# A dispatch that was sent so long ago holds no place among those in flight any more, whatever became of its jobs.
IN_FLIGHT_HOURS = 6
