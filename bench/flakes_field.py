"""A simulated field of flaky tests, regressions and incidents, run through the hub's own rules. Nothing is stored."""

import datetime
import math
import random
from collections import defaultdict
from dataclasses import dataclass
from dataclasses import field as of_each

import numpy as np

from apps.quarantine import streaks
from apps.quarantine.enums import FlakeKind
from apps.quarantine.policy import USUAL_OF, Flake, Rules, entering, is_incident, usual
from apps.quarantine.signs import Signs, Witness, contradicted, signs_of, turned
from apps.results.formats.cases import Outcome

DAYS, RUNS_A_DAY = 30, 4
FLAKY_SHARE, REGRESSION_SHARE, INCIDENT_SHARE, RENAMED_SHARE = 0.05, 0.01, 0.02, 0.1
P_LEAST, P_MOST = 0.005, 0.30
# So many incidents, each of which hits an equal part of the tests that are hit.
INCIDENTS = 2
# How often somebody runs a red run again; and how often a test that failed in an incident fails again at once.
RERUN_SHARE, STAYS_RED = 0.5, 0.6
FILES = 200
BEGUN = datetime.datetime(2026, 9, 1, tzinfo=datetime.UTC)


@dataclass
class Field:
    """Who is what. `flaky`: by test, its probability a run; `regressed`: from which run on; `hit`: by run, who.
    `renamed`: by test, its new number and from which run on."""

    tests: int
    flaky: dict[int, float]
    regressed: dict[int, int]
    hit: dict[int, list[int]]
    renamed: dict[int, tuple[int, int]]


@dataclass
class Result:
    """`flagged`: every test that entered, under its first number; `raised`: those called regressions."""

    field: Field
    flagged: set[int] = of_each(default_factory=set)
    raised: set[int] = of_each(default_factory=set)


def drawn(dice: random.Random, tests: int) -> Field:
    """A field of so many tests; who is what never overlaps."""
    runs = DAYS * RUNS_A_DAY
    order = dice.sample(range(tests), tests)
    counts = [round(tests * share) for share in (FLAKY_SHARE, REGRESSION_SHARE, INCIDENT_SHARE)]
    flaky, rest = order[: counts[0]], order[counts[0] :]
    regressed, rest = rest[: counts[1]], rest[counts[1] :]
    hit = rest[: counts[2]]
    low, high = math.log(P_LEAST), math.log(P_MOST)
    renamed = flaky[: round(len(flaky) * RENAMED_SHARE)]
    return Field(
        tests,
        {test: math.exp(dice.uniform(low, high)) for test in flaky},
        {test: dice.randrange(runs) for test in regressed},
        {dice.randrange(runs): hit[part::INCIDENTS] for part in range(INCIDENTS)},
        {test: (tests + number, dice.randrange(runs)) for number, test in enumerate(renamed)},
    )


def simulated(seed: int, rules: Rules, *, tests: int = 2_000) -> Result:
    """Thirty days of it. Each run is of a commit of its own and repeats what failed once; people run red runs again."""
    dice = random.Random(seed)
    result = Result(drawn(dice, tests))
    hub = _Hub(result, rules)
    for run in range(DAYS * RUNS_A_DAY):
        at = BEGUN + datetime.timedelta(hours=run * 24 / RUNS_A_DAY)
        attempts = [_attempt(dice, result.field, run, is_hit=True)]
        if len(attempts[0].red) and dice.random() < RERUN_SHARE:
            attempts.append(_attempt(dice, result.field, run, is_hit=False))
        hub.hears(run, at, attempts)
    return result


def _attempt(dice: random.Random, of: Field, run: int, *, is_hit: bool) -> Signs:
    codes = np.full(of.tests, Outcome.PASSED, np.int8)
    for test, chance in of.flaky.items():
        if dice.random() < chance:
            codes[test] = Outcome.FAILED if dice.random() < chance else Outcome.FLAKY
    for test in of.hit.get(run, []) if is_hit else []:
        codes[test] = Outcome.FAILED if dice.random() < STAYS_RED else Outcome.FLAKY
    for test, begun in of.regressed.items():
        if run >= begun:
            codes[test] = Outcome.FAILED
    numbers = np.arange(of.tests, dtype=np.int64)
    for test, (new, begun) in of.renamed.items():
        if run >= begun:
            numbers[test] = new
    return signs_of(numbers, codes)


class _Hub:
    """What the hub does with each report, in memory: the same functions in the same order."""

    def __init__(self, result: Result, rules: Rules) -> None:
        self._result, self._rules = result, rules
        self._earlier: Signs | None = None
        self._sizes: list[int] = []
        self._red: dict[int, streaks.Red] = {}
        self._flakes: dict[int, list[Flake]] = defaultdict(list)
        self._standing: set[int] = set()
        # An alias is known from the beginning, as a rename's is once somebody declares it.
        self._first = {new: old for old, (new, _) in result.field.renamed.items()}

    def hears(self, run: int, at: datetime.datetime, attempts: list[Signs]) -> None:
        sizes = [turned(signs, self._earlier) for signs in attempts]
        known = usual(self._sizes[-USUAL_OF:])
        incidents = [is_incident(size, known, self._rules) for size in sizes]
        for number, signs in enumerate(attempts):
            self._note(run, number, at, signs.flaky.tolist(), FlakeKind.RERUN, incidents[number])
            others = [place for place in range(len(attempts)) if place != number]
            witnesses = [Witness(attempts[place], is_other_attempt=True) for place in others]
            for place, kind, tests in contradicted(signs.red, witnesses):
                is_in_incident = incidents[number] or incidents[others[place]]
                self._note(run, number, at, tests.tolist(), kind, is_in_incident)
            look = streaks.Look(run, f"{run}", at, self._named(signs.red), self._named(signs.green))
            self._red = streaks.advanced(self._red, look)
        if self._earlier is not None:
            self._sizes += sizes
        self._earlier = attempts[-1]
        self._detect(at)

    def _named(self, tests: np.ndarray) -> list[int]:
        return [self._first.get(test, test) for test in tests.tolist()]

    def _note(
        self, run: int, attempt: int, at: datetime.datetime, tests: list[int], kind: FlakeKind, is_in_incident: bool
    ) -> None:
        for number in tests:
            test = self._first.get(number, number)
            job = f"{run}.{attempt} ops"
            self._flakes[test].append(Flake(test, kind, f"{run}", job, f"{run}", at, True, is_in_incident))

    def _detect(self, at: datetime.datetime) -> None:
        raised = {test for test, red in self._red.items() if streaks.is_regression(red, self._rules)}
        self._result.raised |= raised
        files = {test: f"test_{test % FILES}" for test in self._flakes.keys() - raised - self._standing}
        for entry in entering(self._flakes, files, self._rules, at):
            self._standing |= entry.tests.keys()
            self._result.flagged |= entry.tests.keys()
