"""The one definition of every number about jobs. Pages, API and policy read these; nobody computes one elsewhere.

Source: docs/metrics.md (upstream's figures for promotion, read from its dashboard). A figure without rows is None,
"no data", never zero.
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
ENDED = ("success", "failure", "timed_out", "cancelled", "contradicted", "neutral")
BUCKETS = (*ENDED, "in_progress", "superseded", "unheard")
# The other sums of Counted.
COUNTS = ("first_ended", "first_success", "timed", "overrun", "queued", "queue_seconds")


@dataclass(frozen=True)
class Counted:
    """What is added up over days: of one repository and scope, or of several. Times in seconds.

    `buckets` holds every job once, by its newest attempt; earlier attempts stand in `superseded`, jobs of which no end
    was heard because the hub itself was out in `unheard`. `first_*` are the other first attempts that ended. `timed`
    are ended jobs whose run time the hub knows, timeouts left out; `overrun` those of them over three hours. `queued`
    are first attempts with a known queue time. `runs` holds one end-to-end time a run.
    """

    buckets: dict[str, int] = field(default_factory=dict)
    first_ended: int = 0
    first_success: int = 0
    timed: int = 0
    overrun: int = 0
    queued: int = 0
    queue_seconds: int = 0
    runs: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        return sum(self.buckets.values())

    @property
    def ended(self) -> int:
        """Completed jobs, cancelled ones included, each by its newest attempt."""
        return sum(self.buckets.get(bucket, 0) for bucket in ENDED)


def add(parts: Iterable[Counted]) -> Counted:
    """Several counts as one."""
    parts = list(parts)
    return Counted(
        buckets={bucket: sum(part.buckets.get(bucket, 0) for part in parts) for bucket in BUCKETS},
        **{name: sum(getattr(part, name) for part in parts) for name in COUNTS},
        runs=tuple(itertools.chain.from_iterable(part.runs for part in parts)),
    )


@dataclass(frozen=True)
class Metric:
    """One figure. `unit`: share (0 to 1) or seconds; `of` names the rows of its denominator."""

    key: str
    title: str
    unit: str
    definition: str
    of: str


METRICS: tuple[Metric, ...] = (
    Metric(
        "pass_rate",
        "Job pass rate",
        "share",
        "Ended jobs that count as success. Each job once, by its newest attempt; cancelled ones count as not passed.",
        "ended jobs",
    ),
    Metric(
        "first_attempt_pass_rate",
        "First-attempt pass rate",
        "share",
        "First attempts that ended in success, whatever a re-run said later.",
        "first attempts that ended",
    ),
    Metric(
        "timeout_rate",
        "Timeout rate",
        "share",
        "Ended jobs that count as timed out. Those that were silent while the hub itself was out are not among them.",
        "ended jobs",
    ),
    Metric(
        "overrun_rate",
        "Overrun rate",
        "share",
        "Ended jobs that ran over three hours by the hub's clock; timed-out ones are left out.",
        "ended jobs with a known run time",
    ),
    Metric(
        "avg_queue_seconds",
        "Average queue time",
        "seconds",
        "From GitHub's acceptance of the dispatch to the first callback, by the hub's clock; first attempts only.",
        "first attempts that reported their start",
    ),
    Metric(
        "e2e_seconds_p50",
        "End to end, median",
        "seconds",
        "Per run: its longest queue time plus the time from its first start to its last end, first attempts only. "
        "The exact median over runs.",
        "runs that ended",
    ),
)


@dataclass(frozen=True)
class Figure:
    """A metric's value and how many rows it rests on. `value` is None without rows; `part` is the numerator."""

    value: float | None
    rows: int
    part: int | None = None


def figures(counted: Counted) -> dict[str, Figure]:
    """Every metric of METRICS over these counts."""
    return {
        "pass_rate": pass_rate(counted),
        "first_attempt_pass_rate": _share(counted.first_success, counted.first_ended),
        "timeout_rate": _share(counted.buckets.get("timed_out", 0), counted.ended),
        "overrun_rate": _share(counted.overrun, counted.timed),
        "avg_queue_seconds": Figure(counted.queue_seconds / counted.queued if counted.queued else None, counted.queued),
        "e2e_seconds_p50": Figure(median(counted.runs), len(counted.runs)),
    }


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
