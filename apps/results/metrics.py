"""The one definition of every number about jobs. Pages, API and policy read these; nobody computes one elsewhere.

What each figure is stands in figure_table.py as rows, what upstream's dashboard would say in upstream.py, both beside
one another in sheet.py. A figure without rows is None, "no data", never zero.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

OVERRUN_SECONDS = 3 * 3_600
PULL_REQUESTS, COMMITS, NIGHTLIES = "pull_request", "push", "nightly"
# Which jobs a figure is about. Criteria read pull requests only, as upstream does.
SCOPES = {
    PULL_REQUESTS: "jobs of pull requests",
    COMMITS: "jobs of pushed commits",
    NIGHTLIES: "nightly and periodic jobs",
}

# Buckets of an ended job. With the others they are disjoint and sum to all rows of a window.
ENDED = ("success", "failure", "timed_out", "cancelled", "contradicted", "neutral", "unexpected")
BUCKETS = (*ENDED, "in_progress", "superseded", "unheard", "informational")
# Parts of a bucket that are told apart where it is shown, with the words for it.
PARTS = {
    "superseded_by_push": "of the superseded cancelled by a newer push",
    "as_declared": "of the successes went wrong as a maintainer declared",
    "listed_apart": "of the failures failed by tests in quarantine alone",
}
# What upstream's formulas add up (apps/results/upstream.py).
UPSTREAM_COUNTS = (
    "upstream_jobs",
    "upstream_success",
    "upstream_timed_out",
    "upstream_genuine",
    "upstream_overrun",
    "upstream_queued",
    "upstream_queue_seconds",
)
# Dispatches, by the day on which they were sent.
ANSWERS = ("sent", "answered", "undecided")
# The other sums of Counted.
COUNTS = ("first_ended", "first_success", "timed", "overrun", "queued", "queue_seconds", "red", *PARTS, *ANSWERS)


@dataclass(frozen=True)
class Counted:
    """What is added up over days: of one repository and scope, or of several. Times in seconds.

    `buckets` holds every job once, by its newest attempt; earlier attempts stand in `superseded`, and so do jobs that
    were cancelled because of a newer push (`superseded_by_push` of them); jobs of which no end was heard because the
    hub itself was out in `unheard`. What a maintainer declared is a success where it came true (`as_declared` of them),
    else `unexpected`; of the failures, those of whose failed tests all are listed apart are told apart
    (`listed_apart`); jobs declared to be `informational` are in no rate. `first_*` are the other first attempts that
    ended. `timed` are ended jobs whose run time the hub knows, timeouts left out; `overrun` those of them over three
    hours. `queued` are first attempts with a known queue time. `runs` holds one end-to-end time a run. Of the
    dispatches `sent` that ask for an answer, `answered` had a final callback, and of `undecided` nobody can say yet.
    `red` are all ends, of whatever attempt, that somebody has to look at; `acknowledged` holds, of each of them that an
    oncall acknowledged, the time from its end to the first who did.
    `upstream_*` is what upstream's own formulas read.
    """

    buckets: dict[str, int] = field(default_factory=dict)
    first_ended: int = 0
    first_success: int = 0
    timed: int = 0
    overrun: int = 0
    queued: int = 0
    queue_seconds: int = 0
    red: int = 0
    superseded_by_push: int = 0
    as_declared: int = 0
    listed_apart: int = 0
    sent: int = 0
    answered: int = 0
    undecided: int = 0
    runs: tuple[int, ...] = ()
    acknowledged: tuple[int, ...] = ()
    upstream_jobs: int = 0
    upstream_success: int = 0
    upstream_timed_out: int = 0
    upstream_genuine: int = 0
    upstream_overrun: int = 0
    upstream_queued: int = 0
    upstream_queue_seconds: int = 0
    upstream_runs: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        return sum(self.buckets.values())

    @property
    def ended(self) -> int:
        """Completed jobs, cancelled ones included, each by its newest attempt."""
        return sum(self.buckets.get(bucket, 0) for bucket in ENDED)

    @property
    def decided(self) -> int:
        """Dispatches of which it is known whether they were answered."""
        return self.sent - self.undecided


def add(parts: Iterable[Counted]) -> Counted:
    """Several counts as one."""
    parts = list(parts)
    return Counted(
        buckets={bucket: sum(part.buckets.get(bucket, 0) for part in parts) for bucket in BUCKETS},
        **{name: sum(getattr(part, name) for part in parts) for name in (*COUNTS, *UPSTREAM_COUNTS)},
        runs=tuple(itertools.chain.from_iterable(part.runs for part in parts)),
        acknowledged=tuple(itertools.chain.from_iterable(part.acknowledged for part in parts)),
        upstream_runs=tuple(itertools.chain.from_iterable(part.upstream_runs for part in parts)),
    )


@dataclass(frozen=True)
class Figure:
    """A metric's value and how many rows it rests on. `value` is None without rows; `part` is the numerator."""

    value: float | None
    rows: int
    part: int | None = None


def figures(counted: Counted) -> dict[str, Figure]:
    """Every metric of figure_table.METRICS over these counts."""
    return {
        "pass_rate": pass_rate(counted),
        "adjusted_pass_rate": _share(counted.buckets.get("success", 0) + counted.listed_apart, counted.ended),
        "first_attempt_pass_rate": _share(counted.first_success, counted.first_ended),
        "timeout_rate": _share(counted.buckets.get("timed_out", 0), counted.ended),
        "overrun_rate": _share(counted.overrun, counted.timed),
        "avg_queue_seconds": Figure(counted.queue_seconds / counted.queued if counted.queued else None, counted.queued),
        "e2e_seconds_p50": Figure(median(counted.runs), len(counted.runs)),
        "answer_rate": _share(counted.answered, counted.decided),
        "silence_count": silence_count(counted),
        "acknowledge_seconds_p50": Figure(median(counted.acknowledged), len(counted.acknowledged)),
        "acknowledged_rate": _share(len(counted.acknowledged), counted.red),
    }


def silence_count(counted: Counted) -> Figure:
    """How many dispatches nobody answered. None, not 0, where none was due."""
    silent = counted.decided - counted.answered
    return Figure(silent if counted.decided else None, counted.decided, silent)


def pass_rate(counted: Counted) -> Figure:
    """The job pass rate alone."""
    return _share(counted.buckets.get("success", 0), counted.ended)


def _share(part: int, whole: int) -> Figure:
    return Figure(part / whole if whole else None, whole, part)


def median(values: Iterable[int]) -> int | None:
    """The exact median: the lower of the two middle values where there are two. None of nothing."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


# How a day or a rate is toned where it is shown at a glance. Only presentation: no decision reads it.
GOOD_FROM, FAIR_FROM = 0.97, 0.90


def tone_of_rate(rate: float | None) -> str:
    """good, warn or bad for a pass rate; quiet without data, so that nothing is green by silence."""
    if rate is None:
        return "quiet"
    return "good" if rate >= GOOD_FROM else "warn" if rate >= FAIR_FROM else "bad"
