"""What outcomes show, as arrays of tests: red, flaky, green; what turned; who contradicts whom. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.quarantine.enums import FlakeKind
from apps.results.formats.cases import Outcome

# Xpassed is wrong but steady; skipped, missing, xfailed and unknown say nothing.
RED = (Outcome.FAILED, Outcome.ERROR, Outcome.LOST)
# A test that passed when it was repeated has passed.
GREEN = (Outcome.PASSED, Outcome.FLAKY)

Tests = NDArray[np.int64]


@dataclass(frozen=True)
class Signs:
    """The tests of one report by what it says of them; each array ascends."""

    red: Tests
    flaky: Tests
    green: Tests


def signs_of(tests: Tests, codes: NDArray[np.int8]) -> Signs:
    """Of rows in any order."""

    def of(wanted: Iterable[Outcome]) -> Tests:
        return np.sort(tests[np.isin(codes, list(wanted))])

    return Signs(of(RED), of([Outcome.FLAKY]), of(GREEN))


def turned(now: Signs, before: Signs | None) -> int:
    """How many tests are red or flaky and were not red in the run before; without one all that are."""
    bad = np.union1d(now.red, now.flaky)
    return len(bad) if before is None else int((~np.isin(bad, before.red)).sum())


@dataclass(frozen=True)
class Witness:
    """Another report of the commit. `is_other_attempt`: of the same run."""

    signs: Signs
    is_other_attempt: bool


def contradicted(red: Tests, others: Sequence[Witness]) -> Iterator[tuple[int, FlakeKind, Tests]]:
    """Which red tests another report of the commit shows green: the place of the witness in `others`, the kind, the
    tests. Each test once: another attempt of the run is the nearest witness, then the first of `others`."""
    for place in sorted(range(len(others)), key=lambda place: not others[place].is_other_attempt):
        is_shown = np.isin(red, others[place].signs.green)
        kind = FlakeKind.ATTEMPTS if others[place].is_other_attempt else FlakeKind.REPORTS
        yield place, kind, red[is_shown]
        red = red[~is_shown]
