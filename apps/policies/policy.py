"""What a policy version holds, pure: criteria of levels, what a gate does with each outcome, and limits.

A version is dated (models.PolicyVersion); what holds before the first is SHIPPED. /policy/ prints the one in force.
Source of the shipped numbers: docs/governance.md, "Where the numbers come from".
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from fractions import Fraction
from typing import Any

from apps.platforms.policy import LEVELS, MATURE, OBSERVATION, ONBOARDING, STABLE

# --- criteria ---------------------------------------------------------------------------------------------------


class Use(StrEnum):
    """What a criterion is for: to reach a level, or to stay there."""

    RISE = "rise"
    STAY = "stay"


class Comparison(StrEnum):
    """How a value has to stand to the threshold."""

    LESS = "<"
    AT_MOST = "<="
    AT_LEAST = ">="
    MORE = ">"

    def holds(self, value: Fraction, threshold: Fraction) -> bool:
        """Whether the value is where it has to be. Exact: a rate of exactly 1 % is not less than 1 %."""
        match self:
            case Comparison.LESS:
                return value < threshold
            case Comparison.AT_MOST:
                return value <= threshold
            case Comparison.AT_LEAST:
                return value >= threshold
            case Comparison.MORE:
                return value > threshold

    @property
    def is_floor(self) -> bool:
        """Whether greater values are better."""
        return self in (Comparison.AT_LEAST, Comparison.MORE)


@dataclass(frozen=True)
class Measure:
    """One thing that criteria can ask for. `unit`: share (0 to 1), seconds, days or count. `is_windowed`: it is
    counted over the criterion's window of days. `is_evidence`: people judge an item that a proposal brings; there is no
    number."""

    title: str
    unit: str
    is_windowed: bool = True
    is_evidence: bool = False


MEASURES: dict[str, Measure] = {
    "app_installed": Measure("GitHub App installed", "", False, True),
    "hardware": Measure("Verifiable hardware", "", False, True),
    "public_repository": Measure("Public repository", "", False, True),
    "callback_pairs": Measure("Complete callback pairs", "count"),
    "refused_share": Measure("Share of requests refused", "share"),
    "tenure_days": Measure("Days at the level below", "days", False),
    "data_days": Measure("Days with data", "days"),
    "runs": Measure("Runs", "count"),
    "pass_rate": Measure("Job pass rate", "share"),
    "first_attempt_pass_rate": Measure("First-attempt pass rate", "share"),
    "timeout_rate": Measure("Timeout rate", "share"),
    "overrun_rate": Measure("Overrun rate", "share"),
    "avg_queue_seconds": Measure("Average queue time", "seconds"),
    "e2e_seconds_p50": Measure("End to end, median", "seconds"),
    "answer_rate": Measure("Answer rate", "share"),
    "silent_days": Measure("Days without an answer", "days", False),
    "oncalls": Measure("Named oncalls", "count", False),
    "compatibility_card": Measure("Current compatibility card", "", False, True),
    "wrongly_blocked_rate": Measure("Wrongly blocked pull requests", "share"),
    "breaker_trips": Measure("Trips of the breaker", "count"),
}
WINDOW_MAX = 90


@dataclass(frozen=True)
class Criterion:
    """One row: `measure` of MEASURES has to stand so to `threshold` over the last `window_days` whole days (0: now).

    `threshold` is decimal text, in the measure's unit; empty for evidence, as is `comparison`. `source`: who asks.
    """

    level: int
    use: Use
    measure: str
    comparison: Comparison | None = None
    threshold: str = ""
    window_days: int = 0
    source: str = "AccelHub"

    @property
    def key(self) -> str:
        """Its name, unique in a version: what objections and waivers cite."""
        return f"L{self.level}.{self.use}.{self.measure}"

    @property
    def of(self) -> Measure:
        return MEASURES[self.measure]

    @property
    def bound(self) -> Fraction:
        """The threshold as an exact number. Evidence has none: ValueError."""
        return Fraction(self.threshold)

    def is_met(self, value: Fraction) -> bool:
        """Whether a value meets it."""
        if self.comparison is None:
            raise ValueError(f"{self.key} is evidence: no value meets it")
        return self.comparison.holds(value, self.bound)

    @property
    def asks(self) -> str:
        """What it asks for, as people read it."""
        if self.comparison is None:
            return "shown by evidence"
        return f"{self.comparison} {shown(self.bound, self.of.unit)}"


_HOUR = 3_600


def shown(value: Fraction, unit: str) -> str:
    """A value as people read it: 93.4 %, 2 h 15 min, 14 days."""
    if unit == "share":
        return f"{_plain(value * 100)} %"
    if unit == "seconds":
        minutes, seconds = divmod(round(value), 60)
        hours, minutes = divmod(minutes, 60)
        parts = [(hours, "h"), (minutes, "min"), (seconds if not hours else 0, "s")]
        return " ".join(f"{number} {name}" for number, name in parts if number) or "0 s"
    return f"{_plain(value)} days" if unit == "days" else _plain(value)


def _plain(value: Fraction) -> str:
    return f"{float(value):.2f}".rstrip("0").rstrip(".")


UPSTREAM = "RFC-0050"
_PROMOTION, _STAY, _LONG = 14, 7, 60


def _figures(level: int, use: Use, window: int, source: str, **asked: tuple[str, str]) -> Iterator[Criterion]:
    for measure, (comparison, threshold) in asked.items():
        yield Criterion(level, use, measure, Comparison(comparison), threshold, window, source)


_UPSTREAMS_OWN = {
    "e2e_seconds_p50": ("<", "10800"),
    "overrun_rate": ("<", "0.01"),
    "avg_queue_seconds": ("<", "1800"),
    "timeout_rate": ("<", "0.01"),
    "pass_rate": (">=", "0.90"),
}
_TO_STAY = {
    "pass_rate": (">=", "0.88"),
    "timeout_rate": ("<", "0.015"),
    "e2e_seconds_p50": ("<", "11700"),
    "answer_rate": (">=", "0.92"),
}

CRITERIA: tuple[Criterion, ...] = (
    *(Criterion(ONBOARDING, Use.RISE, key, source=UPSTREAM) for key in ("app_installed", "hardware")),
    Criterion(ONBOARDING, Use.RISE, "public_repository", source=UPSTREAM),
    *_figures(OBSERVATION, Use.RISE, _PROMOTION, UPSTREAM, callback_pairs=(">=", "1"), refused_share=("<", "0.10")),
    Criterion(OBSERVATION, Use.STAY, "silent_days", Comparison.LESS, "7"),
    Criterion(STABLE, Use.RISE, "tenure_days", Comparison.AT_LEAST, "30", source=UPSTREAM),
    *_figures(STABLE, Use.RISE, 30, UPSTREAM, data_days=(">=", "14")),
    *_figures(STABLE, Use.RISE, _PROMOTION, UPSTREAM, **_UPSTREAMS_OWN),
    *_figures(STABLE, Use.RISE, _PROMOTION, "AccelHub", answer_rate=(">=", "0.95"), runs=(">=", "20")),
    *_figures(STABLE, Use.STAY, _STAY, "AccelHub", **_TO_STAY),
    Criterion(STABLE, Use.STAY, "silent_days", Comparison.LESS, "7"),
    Criterion(MATURE, Use.RISE, "tenure_days", Comparison.AT_LEAST, "60"),
    *_figures(MATURE, Use.RISE, _LONG, "AccelHub", data_days=(">=", "30"), **_UPSTREAMS_OWN),
    *_figures(MATURE, Use.RISE, _LONG, "AccelHub", answer_rate=(">=", "0.95"), runs=(">=", "20")),
    Criterion(MATURE, Use.RISE, "oncalls", Comparison.AT_LEAST, "2"),
    Criterion(MATURE, Use.RISE, "compatibility_card"),
    *_figures(MATURE, Use.RISE, _PROMOTION, "AccelHub", wrongly_blocked_rate=("<=", "0.01")),
    *_figures(MATURE, Use.STAY, _STAY, "AccelHub", **_TO_STAY),
    *_figures(MATURE, Use.STAY, _PROMOTION, "AccelHub", wrongly_blocked_rate=("<=", "0.02")),
    *_figures(MATURE, Use.STAY, 30, "AccelHub", breaker_trips=("<=", "2")),
    Criterion(MATURE, Use.STAY, "silent_days", Comparison.LESS, "7"),
)

# --- what a gate does with an outcome ---------------------------------------------------------------------------


class Act(StrEnum):
    """What the gate does with one outcome of a blocking repository's part."""

    BLOCK = "block"
    WAIT = "wait"
    PASS = "pass"  # with a record: no silence is a pass that nobody can look up  # noqa: S105  no password


@dataclass(frozen=True)
class Handling:
    """`act`; with WAIT for so many `hours` from the first moment of the outcome, and `then` BLOCK or PASS."""

    act: Act
    hours: int = 0
    then: Act | None = None

    @property
    def asks(self) -> str:
        """As people read it."""
        if self.act is not Act.WAIT:
            return _ACT_WORDS[self.act]
        assert self.then is not None, "checked when it was read"
        return f"waits {self.hours} h, then {_ACT_WORDS[self.then]}"


_ACT_WORDS = {Act.BLOCK: "blocks", Act.PASS: "passes, with a record"}

# Outcomes of a blocking repository's part that are neither plain success nor plain failure.
OUTCOMES: dict[str, str] = {
    "missing": "No job of it was heard for this commit.",
    "running": "A job of it has begun and not ended.",
    "timed_out": "A job of it timed out, or went silent.",
    "cancelled": "A job of it was cancelled, and no newer push asked for that.",
    "neutral": "A job of it was skipped or neutral at GitHub.",
    "contradicted": "A success that GitHub's record, its counts or its tests deny.",
    "unexpected": "A job ended in another way than a maintainer declared.",
    "no_tests_named": "A job failed, and no report says which tests.",
    "base_unknown": "A test is red, and nothing near the merge base says whether it was red there.",
    "late": "Its answer came after the wait for it was over.",
    "undispatched": "The hub itself has not got the event to it.",
}
HANDLING: dict[str, Handling] = {
    "missing": Handling(Act.WAIT, 6, Act.PASS),
    "running": Handling(Act.WAIT, 6, Act.PASS),
    "timed_out": Handling(Act.BLOCK),
    "cancelled": Handling(Act.WAIT, 6, Act.PASS),
    "neutral": Handling(Act.PASS),
    "contradicted": Handling(Act.PASS),
    "unexpected": Handling(Act.BLOCK),
    "no_tests_named": Handling(Act.WAIT, 1, Act.BLOCK),
    "base_unknown": Handling(Act.BLOCK),
    "late": Handling(Act.BLOCK),
    "undispatched": Handling(Act.WAIT, 6, Act.PASS),
}

# --- limits -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limit:
    """One number of a policy: what it means, and between which bounds it may be set."""

    part: str
    says: str
    least: int
    most: int


LIMITS: dict[str, Limit] = {
    "dwell_days": Limit("falling", "nightly evaluations in a row that are not met, before a notice", 1, 30),
    "notice_working_days": Limit("falling", "working days from a notice to its deadline", 1, 60),
    "downgrade_working_days": Limit("falling", "working days of a temporary downgrade before it is decided", 1, 20),
    "approvals_l3": Limit("deciding", "maintainers that have to approve L3", 1, 5),
    "approvals_l4": Limit("deciding", "maintainers of different organisations that have to approve L4", 2, 5),
    "objection_working_days": Limit("deciding", "working days for objections to a lazy decision", 1, 30),
    "bundle_days": Limit("deciding", "days after which frozen evidence is too old to decide on", 1, 60),
    "waiver_days_max": Limit("deciding", "days that a waiver may hold, at most", 1, 365),
    "appeal_days": Limit("appeals", "days after a decision or a figure in which it can be appealed", 1, 180),
    "appeal_working_days": Limit("appeals", "working days to decide an appeal", 1, 60),
    "appeal_pause_working_days": Limit("appeals", "working days of its one pause, at most", 1, 30),
    "base_commits": Limit("gate", "commits back from the merge base to look for a tested one", 0, 100),
    "override_hours_max": Limit("gate", "hours that an override may hold, at most", 1, 720),
    "breaker_window_hours": Limit("breaker", "hours that the breaker looks back", 1, 168),
    "breaker_pull_requests": Limit("breaker", "unrelated pull requests blocked within them that open it", 2, 100),
    "breaker_timeouts": Limit("breaker", "pull requests whose part timed out within them that open it", 1, 100),
    "breaker_contradictions": Limit("breaker", "contradicted ends within them that open it", 1, 100),
    "breaker_close_runs": Limit(
        "breaker", "commits of main in a row that it passes, sent since, that close it", 1, 100
    ),
    "breaker_repeat_days": Limit("breaker", "days after a trip in which another closes by a decision alone", 1, 90),
}
NUMBERS: dict[str, int] = {
    "dwell_days": 3,
    "notice_working_days": 10,
    "downgrade_working_days": 2,
    "approvals_l3": 1,
    "approvals_l4": 2,
    "objection_working_days": 5,
    "bundle_days": 7,
    "waiver_days_max": 90,
    "appeal_days": 30,
    "appeal_working_days": 10,
    "appeal_pause_working_days": 5,
    "base_commits": 20,
    "override_hours_max": 168,
    "breaker_window_hours": 6,
    "breaker_pull_requests": 4,
    "breaker_timeouts": 3,
    "breaker_contradictions": 2,
    "breaker_close_runs": 5,
    "breaker_repeat_days": 7,
}

# --- a version --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Policy:
    """All that a version says. `number` is its version's; 0 is what ships."""

    criteria: tuple[Criterion, ...]
    handling: Mapping[str, Handling]
    limits: Mapping[str, int]
    number: int = 0

    def of(self, level: int, use: Use) -> list[Criterion]:
        """The criteria for reaching a level, or for staying there."""
        return [criterion for criterion in self.criteria if criterion.level == level and criterion.use is use]


SHIPPED = Policy(CRITERIA, HANDLING, NUMBERS)


def written(policy: Policy) -> dict[str, Any]:
    """A policy as JSON keeps it: whole numbers and texts only, so that it can be hashed."""
    return {
        "criteria": [
            {
                "level": row.level,
                "use": row.use.value,
                "measure": row.measure,
                "comparison": row.comparison.value if row.comparison else "",
                "threshold": row.threshold,
                "window_days": row.window_days,
                "source": row.source,
            }
            for row in policy.criteria
        ],
        "handling": {
            name: {"act": one.act.value, "hours": one.hours, "then": one.then.value if one.then else ""}
            for name, one in policy.handling.items()
        },
        "limits": dict(policy.limits),
    }


class Contradiction(ValueError):
    """What is wrong with a policy: `field` names the row, the text says what was seen and what to do."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field, self.text = field, text


def read(values: Any, *, number: int = 0) -> Policy:
    """A policy from what `written` gives. Raises Contradiction for the first row that is missing, unknown, of another
    shape, out of bounds, or at odds with another."""
    if not isinstance(values, dict) or set(values) != {"criteria", "handling", "limits"}:
        raise Contradiction("policy", "send an object of criteria, handling and limits.")
    if not isinstance(values["criteria"], list):
        raise Contradiction("criteria", "send a list of rows.")
    policy = Policy(
        criteria=tuple(_criterion(row, f"criteria.{place}") for place, row in enumerate(values["criteria"])),
        handling=dict(_handlings(values["handling"])),
        limits=dict(_limits(values["limits"])),
        number=number,
    )
    for finding in contradictions(policy):
        raise finding
    return policy


_FIELDS = {field.name for field in dataclasses.fields(Criterion)}


def _criterion(row: Any, field: str) -> Criterion:
    if not isinstance(row, dict) or set(row) != _FIELDS:
        raise Contradiction(field, f"send an object of {', '.join(sorted(_FIELDS))}.")
    level, window, measure = row["level"], row["window_days"], row["measure"]
    if type(level) is not int or not ONBOARDING <= level <= MATURE:
        raise Contradiction(f"{field}.level", f"saw {level!r}, send {ONBOARDING} to {MATURE}.")
    if row["use"] not in list(Use):
        raise Contradiction(f"{field}.use", f"saw {row['use']!r}, send {' or '.join(Use)}.")
    if measure not in MEASURES:
        raise Contradiction(f"{field}.measure", f"saw {measure!r}, send one of {', '.join(MEASURES)}.")
    if not isinstance(row["source"], str) or not 1 <= len(row["source"]) <= 100:
        raise Contradiction(f"{field}.source", "say who asks for it, in 1 to 100 characters.")
    of, comparison, threshold = MEASURES[measure], row["comparison"], row["threshold"]
    if of.is_evidence:
        if (comparison, threshold, window) != ("", "", 0):
            raise Contradiction(field, f"{measure} is shown by evidence: leave comparison, threshold and window empty.")
        return Criterion(level, Use(row["use"]), measure, source=row["source"])
    if comparison not in list(Comparison):
        raise Contradiction(f"{field}.comparison", f"saw {comparison!r}, send one of {' '.join(Comparison)}.")
    if type(window) is not int or not (1 <= window <= WINDOW_MAX if of.is_windowed else window == 0):
        wanted = f"1 to {WINDOW_MAX} days" if of.is_windowed else "0: it is read as of now"
        raise Contradiction(f"{field}.window_days", f"saw {window!r}, send {wanted}.")
    _check_threshold(threshold, of.unit, f"{field}.threshold")
    return Criterion(level, Use(row["use"]), measure, Comparison(comparison), threshold, window, row["source"])


_THRESHOLD_LENGTH, _THRESHOLD_MOST = 12, 10_000_000


def _check_threshold(text: Any, unit: str, field: str) -> None:
    try:
        number = Decimal(text) if isinstance(text, str) and len(text) <= _THRESHOLD_LENGTH else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite() or not 0 <= number <= (1 if unit == "share" else _THRESHOLD_MOST):
        wanted = "0 to 1, as in 0.95" if unit == "share" else "a number as in 30"
        raise Contradiction(field, f"saw {text!r}, send decimal text, {wanted}.")


def _handlings(values: Any) -> Iterator[tuple[str, Handling]]:
    if not isinstance(values, dict) or set(values) != set(OUTCOMES):
        raise Contradiction("handling", f"send an object with a row for each of {', '.join(OUTCOMES)}.")
    for name in OUTCOMES:
        row, field = values[name], f"handling.{name}"
        if not isinstance(row, dict) or set(row) != {"act", "hours", "then"} or row["act"] not in list(Act):
            raise Contradiction(field, f"send act ({', '.join(Act)}), hours and then.")
        waits = row["act"] == Act.WAIT
        if type(row["hours"]) is not int or not (1 <= row["hours"] <= _WAIT_MOST if waits else row["hours"] == 0):
            wanted = f"1 to {_WAIT_MOST}" if waits else "0: only wait has hours"
            raise Contradiction(f"{field}.hours", f"saw {row['hours']!r}, send {wanted}.")
        if row["then"] not in ((Act.BLOCK, Act.PASS) if waits else ("",)):
            raise Contradiction(f"{field}.then", "send block or pass with wait, and nothing with the others.")
        yield name, Handling(Act(row["act"]), row["hours"], Act(row["then"]) if waits else None)


# A stuck hub or downstream never freezes merges for longer.
_WAIT_MOST = 72


def _limits(values: Any) -> Iterator[tuple[str, int]]:
    if not isinstance(values, dict) or not set(values) <= set(LIMITS):
        raise Contradiction("limits", f"send an object with a number for each of {', '.join(LIMITS)}.")
    for name, limit in LIMITS.items():
        # A version, or evidence, may be older than a limit.
        value = values.get(name, NUMBERS[name])
        if type(value) is not int or not limit.least <= value <= limit.most:
            raise Contradiction(f"limits.{name}", f"saw {value!r}, send {limit.least} to {limit.most}.")
        yield name, value


def contradictions(policy: Policy) -> Iterator[Contradiction]:
    """Where rows are at odds: one named twice, a threshold to stay that is harder than the one to rise, a higher level
    that asks for less than a lower one, a bound nobody can be on the right side of, a level that asks for nothing."""
    rows: dict[str, Criterion] = {}
    for row in policy.criteria:
        if row.key in rows:
            yield Contradiction(row.key, "it stands there twice: keep one row.")
        rows[row.key] = row
        if row.comparison is Comparison.LESS and row.bound <= 0:
            yield Contradiction(row.key, f"{row.asks}: no value is below it.")
        if row.comparison is Comparison.MORE and row.of.unit == "share" and row.bound >= 1:
            yield Contradiction(row.key, f"{row.asks}: no share is above it.")
    for row in policy.criteria:
        rise = rows.get(f"L{row.level}.{Use.RISE}.{row.measure}")
        if row.use is Use.STAY and rise is not None and _is_harder(row, rise):
            yield Contradiction(row.key, f"staying asks for {row.asks}, rising for {rise.asks}: who rises would fall.")
        lower = rows.get(f"L{row.level - 1}.{row.use}.{row.measure}")
        if lower is not None and row.measure != "tenure_days" and _is_harder(lower, row):
            yield Contradiction(row.key, f"it asks for {row.asks}, L{lower.level} for {lower.asks}: ask for no less.")
    for level in LEVELS[ONBOARDING:]:
        if not policy.of(level.number, Use.RISE):
            yield Contradiction(f"{level.code}.{Use.RISE}", "it asks for nothing: add a criterion.")


def _is_harder(one: Criterion, other: Criterion) -> bool:
    """Whether a value can meet the other and not this one."""
    if one.comparison is None or other.comparison is None:
        return False
    if one.comparison.is_floor is not other.comparison.is_floor:
        return True
    if one.bound == other.bound:
        return one.comparison in (Comparison.LESS, Comparison.MORE) and one.comparison is not other.comparison
    return (one.bound > other.bound) is one.comparison.is_floor


# --- differences ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """One row that two policies do not say alike; empty where one of them has it not."""

    row: str
    before: str
    after: str


def differences(before: Policy, after: Policy) -> list[Difference]:
    """Row for row, in the order of the criteria, the outcomes and the limits."""
    old, new = _rows(before), _rows(after)
    return [
        Difference(name, old.get(name, ""), new.get(name, ""))
        for name in (*old, *(name for name in new if name not in old))
        if old.get(name, "") != new.get(name, "")
    ]


def _rows(policy: Policy) -> dict[str, str]:
    rows = {}
    for row in policy.criteria:
        over = f", over {row.window_days} days" if row.window_days else ""
        rows[row.key] = f"{row.asks}{over} ({row.source})"
    rows |= {f"gate.{name}": policy.handling[name].asks for name in OUTCOMES}
    return rows | {f"limit.{name}": str(policy.limits[name]) for name in LIMITS}
