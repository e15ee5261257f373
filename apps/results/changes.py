"""What changed between two reports, test by test. Pure.

One table decides: how a test stood before × how it stands after → one change. Changes are disjoint, and their counts
sum to the tests that either report names. docs/reports.md prints the table.
"""

import enum
from dataclasses import dataclass

import numpy as np
from django.db import models
from numpy.typing import NDArray

from apps.results.formats.cases import RED, Outcome

# Beside the outcomes: the report does not name the test.
ABSENT = len(Outcome)
ABSENT_WORD = "not there"


class Side(enum.StrEnum):
    """How a test stands in one report, as far as comparing goes."""

    GREEN = "as it should be"
    RED = "red"
    FLAKY = "flaky"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"
    ABSENT = ABSENT_WORD


SIDE_OF: dict[int, Side] = {
    Outcome.PASSED: Side.GREEN,
    Outcome.XFAILED: Side.GREEN,
    Outcome.SKIPPED: Side.SKIPPED,
    Outcome.FLAKY: Side.FLAKY,
    Outcome.UNKNOWN: Side.UNKNOWN,
    ABSENT: Side.ABSENT,
} | dict.fromkeys(RED, Side.RED)


class Change(models.TextChoices):
    """The changes, the most urgent first: rows are listed in this order."""

    NEWLY_RED = "newly_red", "newly red"
    STILL_RED = "still_red", "still red"
    SILENCED = "silenced", "silenced"
    UNCLEAR = "unclear", "unclear"
    NEWLY_FLAKY = "newly_flaky", "newly flaky"
    STILL_FLAKY = "still_flaky", "still flaky"
    DISAPPEARED = "disappeared", "disappeared"
    NEWLY_SKIPPED = "newly_skipped", "newly skipped"
    FIXED = "fixed", "fixed"
    STEADIED = "steadied", "steadied"
    NEWLY_RUN = "newly_run", "newly run"
    APPEARED = "appeared", "appeared"
    STILL_SKIPPED = "still_skipped", "still skipped"
    UNCHANGED = "unchanged", "unchanged"


# What each means, and its tone.
MEANINGS: dict[Change, tuple[str, str]] = {
    Change.NEWLY_RED: ("bad", "red now and not before, whatever it was: also a new test that is red"),
    Change.STILL_RED: ("bad", "red in both"),
    Change.SILENCED: ("warn", "was red, is skipped or gone now: not fixed"),
    Change.UNCLEAR: ("warn", "on one side nobody knows how it ended"),
    Change.NEWLY_FLAKY: ("warn", "passes only when it is tried again, and was not so before"),
    Change.STILL_FLAKY: ("warn", "flaky in both"),
    Change.DISAPPEARED: ("warn", "the later report does not name it; it was not red"),
    Change.NEWLY_SKIPPED: ("warn", "skipped now and not before; it was not red"),
    Change.FIXED: ("good", "was red, ends as it should now"),
    Change.STEADIED: ("good", "was flaky, ends as it should at once now"),
    Change.NEWLY_RUN: ("good", "was skipped, ends as it should now"),
    Change.APPEARED: ("info", "the earlier report does not name it; it is neither red nor flaky"),
    Change.STILL_SKIPPED: ("quiet", "skipped in both"),
    Change.UNCHANGED: ("quiet", "ends as it should in both"),
}
# What is listed unless one asks for it by name.
QUIET = (Change.STILL_SKIPPED, Change.UNCHANGED)

_AFTER = (Side.GREEN, Side.RED, Side.FLAKY, Side.SKIPPED, Side.UNKNOWN, Side.ABSENT)
_C = Change
# Before, down; after, across.
_ROWS: dict[Side, tuple[Change | None, ...]] = {
    Side.GREEN: (_C.UNCHANGED, _C.NEWLY_RED, _C.NEWLY_FLAKY, _C.NEWLY_SKIPPED, _C.UNCLEAR, _C.DISAPPEARED),
    Side.RED: (_C.FIXED, _C.STILL_RED, _C.NEWLY_FLAKY, _C.SILENCED, _C.UNCLEAR, _C.SILENCED),
    Side.FLAKY: (_C.STEADIED, _C.NEWLY_RED, _C.STILL_FLAKY, _C.NEWLY_SKIPPED, _C.UNCLEAR, _C.DISAPPEARED),
    Side.SKIPPED: (_C.NEWLY_RUN, _C.NEWLY_RED, _C.NEWLY_FLAKY, _C.STILL_SKIPPED, _C.UNCLEAR, _C.DISAPPEARED),
    Side.UNKNOWN: (_C.UNCLEAR, _C.NEWLY_RED, _C.UNCLEAR, _C.UNCLEAR, _C.UNCLEAR, _C.DISAPPEARED),
    Side.ABSENT: (_C.APPEARED, _C.NEWLY_RED, _C.NEWLY_FLAKY, _C.APPEARED, _C.APPEARED, None),
}
TABLE: dict[tuple[Side, Side], Change] = {
    (before, after): change
    for before, row in _ROWS.items()
    for after, change in zip(_AFTER, row, strict=True)
    if change is not None
}
_PLACES = {change: place for place, change in enumerate(Change)}
_CODES = ABSENT + 1
# By before × codes + after, the place of the change; what is in neither report stands nowhere.
_LOOKUP = np.array(
    [
        _PLACES[TABLE.get((SIDE_OF[before], SIDE_OF[after]), Change.UNCHANGED)]
        for before in range(_CODES)
        for after in range(_CODES)
    ],
    np.int8,
)


@dataclass(frozen=True, slots=True)
class Columns:
    """One report's tests by number, ascending, each once; and how each ended."""

    test: NDArray[np.int64]
    outcome: NDArray[np.int8]

    @classmethod
    def of(cls, test: NDArray[np.int64], outcome: NDArray[np.int8]) -> "Columns":
        """Of rows in any order."""
        if len(test) < 2 or bool((test[1:] > test[:-1]).all()):
            return cls(test, outcome)
        order = np.argsort(test, kind="stable")
        return cls(test[order], outcome[order])


@dataclass(frozen=True, slots=True)
class Compared:
    """Every test of two reports, ascending, with its codes before and after (ABSENT: not named) and its change."""

    test: NDArray[np.int64]
    before: NDArray[np.int8]
    after: NDArray[np.int8]
    change: NDArray[np.int8]

    @property
    def counts(self) -> dict[str, int]:
        """By change, how many tests; together all of them."""
        found = np.bincount(self.change, minlength=len(Change)).tolist()
        return {change.value: found[place] for change, place in _PLACES.items()}

    @property
    def cells(self) -> list[tuple[str, str, Change, int]]:
        """Outcome before, after, the change and how many tests: every pair that occurs."""
        pairs = np.bincount(self.before.astype(np.int16) * _CODES + self.after, minlength=_CODES**2)
        return [
            (word_of(at // _CODES), word_of(at % _CODES), list(Change)[_LOOKUP[at]], int(pairs[at]))
            for at in np.flatnonzero(pairs).tolist()
        ]

    def rows(self, change: str = "") -> NDArray[np.intp]:
        """Where the tests of one change stand; without one, all that are not QUIET, the most urgent first."""
        if change:
            return np.flatnonzero(self.change == _PLACES[Change(change)])
        found = np.flatnonzero(self.change < min(_PLACES[quiet] for quiet in QUIET))
        return found[np.argsort(self.change[found], kind="stable")]


def compare(before: Columns, after: Columns) -> Compared:
    """Align two reports by their tests, and say of each what changed."""
    if np.array_equal(before.test, after.test):
        tests, earlier, later = before.test, before.outcome, after.outcome
    else:
        tests = union(before.test, after.test)
        earlier, later = _spread(before, tests), _spread(after, tests)
    return Compared(tests, earlier, later, _LOOKUP[earlier.astype(np.int16) * _CODES + later])


def union(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every number of both, ascending, once. numpy's own union hashes each number: a hundred times slower."""
    both = np.concatenate([one, other])
    both.sort(kind="stable")
    return both[np.append(True, both[1:] != both[:-1])] if len(both) else both


def _spread(columns: Columns, tests: NDArray[np.int64]) -> NDArray[np.int8]:
    found = np.full(len(tests), ABSENT, np.int8)
    found[np.searchsorted(tests, columns.test)] = columns.outcome
    return found


def word_of(code: int) -> str:
    """An outcome's word."""
    return ABSENT_WORD if code == ABSENT else Outcome(code).label


def change_at(compared: Compared, at: int) -> Change:
    """The change of one row."""
    return list(Change)[compared.change[at]]
