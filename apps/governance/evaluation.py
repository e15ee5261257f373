"""Criteria held against what was counted, pure: met, not met, or no result; and when it could be met next.

Figures are over whole UTC days: a window of 14 days ends with yesterday, whatever range a page shows. Nothing is met by
silence: without rows there is no result (docs/governance.md, "Evaluation").
"""

import datetime
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any

from apps.platforms.policy import LEVELS
from apps.policies.policy import Criterion, Policy, Use, shown
from apps.results.metrics import Counted, add, figures

DAY = datetime.timedelta(days=1)
NO_JOBS = "no PR jobs"


class Verdict(StrEnum):
    """What one criterion, or all of them together, came to."""

    MET = "met"
    NOT_MET = "not met"
    NO_RESULT = "no result"


@dataclass(frozen=True)
class Refusals:
    """So many refused requests of all `requests` since a day."""

    refused: int
    requests: int
    since: datetime.date


# A level that was held: from when, and until when; None: it still is.
Held = tuple[int, datetime.datetime, datetime.datetime | None]


def days_held(intervals: Iterable[Held], now: datetime.datetime) -> dict[int, Fraction]:
    """Days at each level or above it, up to now."""
    days: dict[int, Fraction] = defaultdict(Fraction)
    for level, start, end in intervals:
        spent = min(end or now, now) - start
        for reached in range(level + 1):
            days[reached] += Fraction(int(spent.total_seconds()), 86_400)
    return days


@dataclass(frozen=True)
class Facts:
    """What is known of one repository at a moment.

    `days`: its counts of pull request jobs by UTC day, as far back as the longest window. `has_other_jobs`: it reports
    jobs of other scopes. `tenure`: days at each level or above it, those of imported intervals included. `answered_at`:
    its newest callback; `asked_at`: the newest dispatch to it. `pairs`: jobs of which start and end were heard, by day.
    `verified` of `ended` jobs are confirmed by GitHub's record.
    `replayed`: (pull requests that blocking would have stopped wrongly, those of which it is known), by day; None: no
    replay was made. `trips` of its breaker by day; None: it has none.
    """

    today: datetime.date
    now: datetime.datetime
    days: Mapping[datetime.date, Counted] = field(default_factory=dict)
    has_other_jobs: bool = False
    tenure: Mapping[int, Fraction] = field(default_factory=dict)
    answered_at: datetime.datetime | None = None
    asked_at: datetime.datetime | None = None
    level_since: datetime.datetime | None = None
    pairs: Mapping[datetime.date, int] = field(default_factory=dict)
    refusals: Refusals | None = None
    oncalls: tuple[str, ...] = ()
    verified: int = 0
    ended: int = 0
    replayed: Mapping[datetime.date, tuple[int, int]] | None = None
    trips: Mapping[datetime.date, int] | None = None

    def counted(self, window: int, *, later: int = 0) -> Counted:
        """The counts of a window of whole days: the one that ends yesterday, or `later` days after it if nothing came
        any more."""
        first = self.today - (window - later) * DAY
        return add(counted for day, counted in self.days.items() if first <= day < self.today)

    @property
    def reports_others_only(self) -> bool:
        """Whether it reports jobs, and has had none of a pull request in any window."""
        return self.has_other_jobs and not any(counted.ended for counted in self.days.values())

    @property
    def trust(self) -> str:
        """How far conclusions are known."""
        if not self.ended or not self.verified:
            return "self-reported"
        return "verified" if self.verified == self.ended else f"verified {self.verified} of {self.ended}"


@dataclass(frozen=True)
class Reading:
    """What a criterion reads: its value, None where there is none (`why`), over so many `rows` of `counts`."""

    value: Fraction | None
    rows: int = 0
    counts: str = ""
    trust: str = "the hub's own"
    why: str = ""


@dataclass(frozen=True)
class Result:
    """One criterion's result. `possible_on`: the first day on which it could be met, if nothing else goes wrong."""

    criterion: Criterion
    reading: Reading
    verdict: Verdict
    sentence: str
    possible_on: datetime.date | None = None
    waiver: str = ""

    @property
    def shown(self) -> str:
        """The value as people read it."""
        return "no data" if self.reading.value is None else shown(self.reading.value, self.criterion.of.unit)

    @property
    def stands(self) -> bool:
        """Whether it keeps nobody from the level: met, or waived."""
        return self.verdict is Verdict.MET or bool(self.waiver)

    def written(self) -> dict[str, Any]:
        """As JSON: exact numbers as text."""
        value = self.reading.value
        return {
            "criterion": self.criterion.key,
            "asks": self.criterion.asks,
            "window_days": self.criterion.window_days,
            "value": None if value is None else str(value),
            "shown": self.shown,
            "rows": self.reading.rows,
            "counts": self.reading.counts,
            "trust": self.reading.trust,
            "verdict": self.verdict.value,
            "sentence": self.sentence,
            "possible_on": self.possible_on.isoformat() if self.possible_on else None,
            "waiver": self.waiver,
        }


@dataclass(frozen=True)
class Evaluation:
    """All criteria of one level and use, under one policy. `notes` are what a reviewer has to say something about."""

    level: int
    use: Use
    policy_number: int
    results: tuple[Result, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Met where every criterion is met or waived; not met where one is not; else no result."""
        open_ones = [result.verdict for result in self.results if not result.stands]
        if not open_ones:
            return Verdict.MET if self.results else Verdict.NO_RESULT
        return Verdict.NOT_MET if Verdict.NOT_MET in open_ones else Verdict.NO_RESULT

    @property
    def sentence(self) -> str:
        """The whole in one sentence."""
        code = LEVELS[self.level].code
        missing = [result.criterion.of.title for result in self.results if not result.stands]
        if any(result.reading.why == NO_JOBS for result in self.results):
            return f"Not eligible: {NO_JOBS}."
        if not missing:
            return f"Meets {'all that' if self.use is Use.RISE else 'what staying at'} {code} asks for."
        names = ", ".join(missing).lower()
        if self.use is Use.STAY:
            return f"Does not show what staying at {code} asks for: {names}."
        return f"Not yet {code}: {names}."

    @property
    def possible_on(self) -> datetime.date | None:
        """The first day on which all could be met; None where that is not known."""
        days = [result.possible_on for result in self.results if not result.stands]
        return None if not days or None in days else max(day for day in days if day is not None)


def evaluate(
    level: int,
    use: Use,
    *,
    policy: Policy,
    facts: Facts,
    shown_by: Iterable[str] = (),
    waivers: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
) -> Evaluation:
    """Hold the criteria of a level against the facts. `shown_by`: the measures for which a proposal brings evidence;
    `waivers`: by the criterion's key, the words of a waiver that holds."""
    given, brought = waivers or {}, set(shown_by)
    results = tuple(
        _judge(criterion, facts, criterion.measure in brought, given.get(criterion.key, ""))
        for criterion in policy.of(level, use)
    )
    return Evaluation(level, use, policy.number, results, tuple(notes))


def _judge(criterion: Criterion, facts: Facts, is_brought: bool, waiver: str) -> Result:
    if criterion.of.is_evidence:
        reading = Reading(None, why="" if is_brought else "a proposal brings it", trust="judged by people")
        verdict = Verdict.MET if is_brought else Verdict.NO_RESULT
        sentence = "Shown by evidence." if is_brought else f"{criterion.of.title}: {reading.why}."
        return Result(criterion, reading, verdict, sentence, waiver=waiver)
    reading = READERS[criterion.measure](facts, criterion, 0)
    if reading.value is None:
        return Result(criterion, reading, Verdict.NO_RESULT, f"{criterion.of.title}: {reading.why}.", waiver=waiver)
    is_met = criterion.is_met(reading.value)
    sentence = f"{criterion.of.title} {shown(reading.value, criterion.of.unit)}, asked {criterion.asks}"
    if reading.counts:
        sentence += f", over {reading.rows} {reading.counts}"
    return Result(
        criterion,
        reading,
        Verdict.MET if is_met else Verdict.NOT_MET,
        f"{sentence}.",
        None if is_met else _possible_on(criterion, facts, reading.value),
        waiver,
    )


def _possible_on(criterion: Criterion, facts: Facts, value: Fraction) -> datetime.date | None:
    """When it could be met at the earliest: with each day that passes, or once the bad days have left the window."""
    if criterion.measure in ("tenure_days", "data_days"):
        missing = criterion.bound - value
        return facts.today + max(1, -(-missing.numerator // missing.denominator)) * DAY
    if criterion.measure not in _LEAVES:
        return None
    for later in range(1, criterion.window_days):
        then = READERS[criterion.measure](facts, criterion, later).value
        if then is not None and criterion.is_met(then):
            return facts.today + later * DAY
    return None


# --- what each measure reads ------------------------------------------------------------------------------------

Reader = Callable[[Facts, Criterion, int], Reading]
_FIGURES = {
    "pass_rate": "jobs",
    "first_attempt_pass_rate": "first attempts",
    "timeout_rate": "jobs",
    "overrun_rate": "jobs",
    "avg_queue_seconds": "first attempts",
    "e2e_seconds_p50": "runs",
    "answer_rate": "dispatches",
}
_HUBS = ("avg_queue_seconds", "e2e_seconds_p50", "answer_rate")
_LEAVES = (*_FIGURES, "wrongly_blocked_rate", "breaker_trips")


def _figure(facts: Facts, criterion: Criterion, later: int) -> Reading:
    counted = facts.counted(criterion.window_days, later=later)
    figure = figures(counted)[criterion.measure]
    trust = "the hub's own" if criterion.measure in _HUBS else facts.trust
    if figure.value is None:
        why = NO_JOBS if facts.reports_others_only else f"no data in {criterion.window_days} days"
        return Reading(None, why=why, trust=trust)
    value = Fraction(figure.value) if figure.part is None else Fraction(figure.part, figure.rows)
    return Reading(value, figure.rows, _FIGURES[criterion.measure], trust)


def _runs(facts: Facts, criterion: Criterion, later: int) -> Reading:
    counted = facts.counted(criterion.window_days, later=later)
    if facts.reports_others_only:
        return Reading(None, why=NO_JOBS)
    return Reading(Fraction(len(counted.runs)), len(counted.runs), "runs that ended")


def _data_days(facts: Facts, criterion: Criterion, later: int) -> Reading:
    first = facts.today - (criterion.window_days - later) * DAY
    days = sum(1 for day, counted in facts.days.items() if first <= day < facts.today and counted.ended)
    if facts.reports_others_only:
        return Reading(None, why=NO_JOBS)
    return Reading(Fraction(days), days, "days")


def _tenure(facts: Facts, criterion: Criterion, _later: int) -> Reading:
    return Reading(facts.tenure.get(criterion.level - 1, Fraction(0)))


def _silent(facts: Facts, _criterion: Criterion, _later: int) -> Reading:
    """Days since its last answer, where something was sent since; without a dispatch nobody is silent."""
    since = max(filter(None, (facts.answered_at, facts.level_since)), default=None)
    if facts.asked_at is None or since is None or facts.asked_at <= since:
        return Reading(Fraction(0))
    return Reading(Fraction(int((facts.now - since).total_seconds()), 86_400))


def _pairs(facts: Facts, criterion: Criterion, _later: int) -> Reading:
    first = facts.today - criterion.window_days * DAY
    pairs = sum(count for day, count in facts.pairs.items() if day >= first)
    return Reading(Fraction(pairs), pairs, "jobs with start and end")


def _refused(facts: Facts, _criterion: Criterion, _later: int) -> Reading:
    sent = facts.refusals
    if sent is None or not sent.requests:
        return Reading(None, why="nothing was sent to the hub")
    return Reading(Fraction(sent.refused, sent.requests), sent.requests, f"requests since {sent.since}")


def _oncalls(facts: Facts, _criterion: Criterion, _later: int) -> Reading:
    return Reading(Fraction(len(facts.oncalls)), len(facts.oncalls), "names")


def _wrongly_blocked(facts: Facts, criterion: Criterion, later: int) -> Reading:
    if facts.replayed is None:
        return Reading(None, why="no replay was made")
    first = facts.today - (criterion.window_days - later) * DAY
    days = [counts for day, counts in facts.replayed.items() if first <= day < facts.today]
    wrongly, looked_at = (sum(column) for column in zip(*days, strict=True)) if days else (0, 0)
    if not looked_at:
        return Reading(None, why=f"no pull request of which it is known in {criterion.window_days} days")
    return Reading(Fraction(wrongly, looked_at), looked_at, "pull requests")


def _trips(facts: Facts, criterion: Criterion, later: int) -> Reading:
    first = facts.today - (criterion.window_days - later) * DAY
    if facts.trips is None:
        return Reading(None, why="it has no breaker")
    trips = sum(count for day, count in facts.trips.items() if first <= day)
    return Reading(Fraction(trips), trips, "trips")


READERS: dict[str, Reader] = {
    **dict.fromkeys(_FIGURES, _figure),
    "runs": _runs,
    "data_days": _data_days,
    "tenure_days": _tenure,
    "silent_days": _silent,
    "callback_pairs": _pairs,
    "refused_share": _refused,
    "oncalls": _oncalls,
    "wrongly_blocked_rate": _wrongly_blocked,
    "breaker_trips": _trips,
}
