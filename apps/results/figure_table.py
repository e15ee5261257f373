"""What every figure is, as rows: printed on `/policy/metrics/`, answered by `GET /api/v1/metrics/`.

`counting.py` counts what these rows say. Levels: what is reported below L2 becomes no job, so no figure holds it.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Kind:
    """A kind of job or end that figures may treat in different ways."""

    key: str
    title: str
    meaning: str


KINDS: tuple[Kind, ...] = (
    Kind("rerun", "earlier attempt", "A later attempt of the same run, workflow and job name took its place."),
    Kind(
        "cancelled_by_push",
        "cancelled by a newer push",
        "Cancelled after a newer commit of its pull request, or of its ref, had reached the hub. It stands in the "
        "bucket superseded.",
    ),
    Kind("cancelled", "cancelled alone", "Cancelled, and the hub knows of no newer push that asked for it."),
    Kind("skipped", "skipped", "GitHub's conclusion skipped: bucket neutral."),
    Kind("neutral", "neutral", "GitHub's conclusions neutral, stale and action_required: bucket neutral."),
    Kind("inferred", "ended by the hub", "Silent past its limit: bucket timed_out, until a real end replaces it."),
    Kind(
        "unheard", "silent while the hub was out", "The same, where the hub itself was out meanwhile: bucket unheard."
    ),
    Kind("contradicted", "contradicted", "A success that GitHub's record, its counts or its tests deny."),
    Kind("late", "webhook came late", "Its webhook was lost in an outage of the hub and fetched afterwards."),
    Kind("expected", "as declared", "Ended as a maintainer declared it is meant to (a job that is meant to fail)."),
    Kind("unexpected", "not as declared", "Ended in another way than a maintainer declared."),
    Kind(
        "red_apart",
        "failed by quarantine alone",
        "A failure of whose failed tests all were in quarantine when the report came, and the report is whole.",
    ),
    Kind("informational", "informational", "A maintainer declared that it says nothing about the platform."),
)

# Which jobs: all of a scope. Criteria read those of pull requests.
POPULATION = "pull request jobs (pushed commits, and nightly with periodic jobs, are counted apart), at L2 and above"
DISPATCHES = "dispatches of pull requests at L2 and above that GitHub took; closed pull requests ask for no answer"
OUT, ROW, PART, OTHER = "left out", "counts as not passed", "counts", "as any other"


@dataclass(frozen=True)
class Metric:
    """One figure. `unit`: share (0 to 1), seconds or count. `counts` is what its rows are: job, run or dispatch; `of`
    names those of its denominator. `kinds` says for each of KINDS what happens to it. `clock` is whose clock is read.
    `upstream` is upstream's own formula in words, where it has one.
    """

    key: str
    title: str
    unit: str
    counts: str
    definition: str
    numerator: str
    denominator: str
    of: str
    clock: str
    kinds: dict[str, str] = field(default_factory=dict)
    upstream: str = ""

    @property
    def population(self) -> str:
        """Which rows it looks at, before anything is left out."""
        return DISPATCHES if self.counts == "dispatch" else POPULATION

    @property
    def treatments(self) -> list[tuple[Kind, str]]:
        """(kind, what happens to it), in the order of KINDS."""
        return [(kind, self.kinds[kind.key]) for kind in KINDS]


NO_CLOCK, SERVER = "none", "the hub's"

_RATED = {
    "rerun": OUT,
    "cancelled_by_push": OUT,
    "cancelled": ROW,
    "skipped": ROW,
    "neutral": ROW,
    "inferred": ROW,
    "unheard": OUT,
    "contradicted": ROW,
    "late": OTHER,
    "expected": "counts as passed, and is told apart",
    "unexpected": ROW,
    "red_apart": ROW,
    "informational": OUT,
}
_ADJUSTED = _RATED | {"red_apart": "counts as passed"}
_FIRST = _RATED | {"rerun": "is what is counted; later attempts are left out"}
_TIMEOUTS = _RATED | dict.fromkeys(
    ("cancelled", "skipped", "neutral", "contradicted", "unexpected", "red_apart"), "of the denominator"
)
_TIMEOUTS |= {"inferred": PART, "expected": "of the denominator"}
_TIMED = {
    "rerun": OUT,
    "cancelled_by_push": OUT,
    **dict.fromkeys(
        ("cancelled", "skipped", "neutral", "contradicted", "late", "expected", "unexpected", "red_apart"), OTHER
    ),
    "inferred": OUT,
    "unheard": OUT,
    "informational": OUT,
}
_QUEUED = dict.fromkeys((kind.key for kind in KINDS), OTHER) | {
    "rerun": "is what is counted; later attempts are left out",
    "late": OUT,
}
_RUNS = dict.fromkeys((kind.key for kind in KINDS), OTHER) | {
    "rerun": "is what is counted; later attempts are left out",
    **dict.fromkeys(("cancelled_by_push", "inferred", "unheard", "late"), "its run is left out"),
}
_RED = {kind.key: OUT for kind in KINDS} | {
    "rerun": "counts: an end of its own, whatever came after",
    **dict.fromkeys(("inferred", "contradicted", "red_apart"), PART),
    "late": OTHER,
    "unexpected": "counts where it failed or timed out",
}
_ANSWERS = dict.fromkeys((kind.key for kind in KINDS), "an answer, as any end") | {
    "rerun": "one dispatch, one answer",
    "inferred": "no answer",
    "unheard": OUT,
    "late": OTHER,
}

METRICS: tuple[Metric, ...] = (
    Metric(
        key="pass_rate",
        title="Job pass rate",
        unit="share",
        counts="job",
        definition="Ended jobs that count as success. Each job once, by its newest attempt; cancelled ones count as "
        "not passed, unless a newer push cancelled them.",
        numerator="ended jobs that count as success",
        denominator="ended jobs",
        of="ended jobs",
        clock=NO_CLOCK,
        kinds=_RATED,
        upstream="Conclusion success, over all completed jobs, cancelled ones included; each run and job name once, by "
        "its highest completed attempt.",
    ),
    Metric(
        key="adjusted_pass_rate",
        title="Adjusted job pass rate",
        unit="share",
        counts="job",
        definition="The job pass rate, but a failure of whose failed tests all were in quarantine when its report came "
        "counts as passed. No criterion reads it.",
        numerator="ended jobs that count as success, and failures by tests in quarantine alone",
        denominator="ended jobs",
        of="ended jobs",
        clock=NO_CLOCK,
        kinds=_ADJUSTED,
    ),
    Metric(
        key="first_attempt_pass_rate",
        title="First-attempt pass rate",
        unit="share",
        counts="job",
        definition="First attempts that ended in success, whatever a re-run said later.",
        numerator="first attempts that count as success",
        denominator="first attempts that ended",
        of="first attempts that ended",
        clock=NO_CLOCK,
        kinds=_FIRST,
    ),
    Metric(
        key="timeout_rate",
        title="Timeout rate",
        unit="share",
        counts="job",
        definition="Ended jobs that count as timed out. Those that were silent while the hub itself was out are not "
        "among them.",
        numerator="ended jobs that count as timed out",
        denominator="ended jobs",
        of="ended jobs",
        clock=SERVER,
        kinds=_TIMEOUTS,
        upstream="Conclusion timed_out, over all completed jobs; each run and job name once, by its highest completed "
        "attempt.",
    ),
    Metric(
        key="overrun_rate",
        title="Overrun rate",
        unit="share",
        counts="job",
        definition="Ended jobs that ran over three hours by the hub's clock; timed-out ones are left out.",
        numerator="ended jobs that ran over three hours",
        denominator="ended jobs with a known run time that did not time out",
        of="ended jobs with a known run time",
        clock=SERVER,
        kinds=_TIMED,
        upstream="Over three hours between both callbacks, over all completed jobs that did not time out, those "
        "without a known run time included.",
    ),
    Metric(
        key="avg_queue_seconds",
        title="Average queue time",
        unit="seconds",
        counts="job",
        definition="From GitHub's acceptance of the dispatch to the first callback, by the hub's clock; first attempts "
        "only.",
        numerator="their queue times, added up",
        denominator="first attempts whose start was heard",
        of="first attempts that reported their start",
        clock=SERVER,
        kinds=_QUEUED,
        upstream="Over completed jobs, each run and job name once, by its highest completed attempt: a re-run has "
        "queued since the dispatch.",
    ),
    Metric(
        key="e2e_seconds_p50",
        title="End to end, median",
        unit="seconds",
        counts="run",
        definition="Per run: its longest queue time plus the time from its first start to its last end, first attempts "
        "only. The exact median over runs.",
        numerator="the median of their times, the lower of two middle values",
        denominator="runs that ended and whose start was heard",
        of="runs that ended",
        clock=SERVER,
        kinds=_RUNS,
        upstream="Longest queue time, plus first start to last end by the downstream's clock, over completed jobs by "
        "their highest completed attempt; the upper of two middle values.",
    ),
    Metric(
        key="answer_rate",
        title="Answer rate",
        unit="share",
        counts="dispatch",
        definition="Dispatches that got a final callback. One that the hub may have missed by an outage of its own, "
        "and one whose answer may still come, are left out.",
        numerator="dispatches with a final callback",
        denominator="dispatches whose answer is due",
        of="dispatches whose answer is due",
        clock=SERVER,
        kinds=_ANSWERS,
    ),
    Metric(
        key="silence_count",
        title="Silences",
        unit="count",
        counts="dispatch",
        definition="Dispatches whose answer was due and that got no final callback.",
        numerator="dispatches without a final callback",
        denominator="dispatches whose answer is due",
        of="dispatches whose answer is due",
        clock=SERVER,
        kinds=_ANSWERS,
    ),
    Metric(
        key="acknowledge_seconds_p50",
        title="Time to acknowledge, median",
        unit="seconds",
        counts="job",
        definition="From a red end to the first oncall who acknowledged it, by the hub's clock. The exact median over "
        "those that were; what nobody acknowledged has no time. No criterion reads it.",
        numerator="the median of their times, the lower of two middle values",
        denominator="red ends that an oncall acknowledged",
        of="red ends that were acknowledged",
        clock=SERVER,
        kinds=_RED,
    ),
    Metric(
        key="acknowledged_rate",
        title="Red jobs acknowledged",
        unit="share",
        counts="job",
        definition="Red ends that an oncall acknowledged. Red is what failed, timed out or is contradicted, by any "
        "attempt. No criterion reads it.",
        numerator="red ends that an oncall acknowledged",
        denominator="red ends",
        of="red ends",
        clock=NO_CLOCK,
        kinds=_RED,
    ),
)
