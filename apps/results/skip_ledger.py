"""What a report did not run, and why: its skips by reason and class, each corroborated or self-reported.

A platform may say that a test is for another device. That counts once another platform's public report of the same
commit and variant ran the test; until then, and for every other class, it is the platform's own word.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from django.contrib.auth.models import AnonymousUser
from numpy.typing import NDArray

from apps.platforms.models import Platform
from apps.results import catalogue
from apps.results.bases import platforms_of
from apps.results.changes import Columns
from apps.results.compare import columns_of
from apps.results.formats.cases import Outcome
from apps.results.models import Reason, Report
from apps.results.skips import MEANINGS, DisabledBy, SkipClass, classify, disabled_by

# Classes that another platform's result can bear out: it ran what was left out here.
CORROBORABLE = frozenset({SkipClass.WRONG_DEVICE, SkipClass.ELSEWHERE})
# So many other platforms' reports are read.
WITNESSES_MAX = 5
# Of these nobody knows that the test was executed.
NOT_RUN = (Outcome.SKIPPED, Outcome.LOST, Outcome.UNKNOWN)


class Trust(enum.StrEnum):
    """The hub's trust labels that a skip can have."""

    CORROBORATED = "corroborated"
    SELF_REPORTED = "self-reported"


@dataclass(frozen=True)
class OfClass:
    """The skips of one class. `corroborated`: how many of them; None where nobody else's result could say so."""

    skip_class: SkipClass
    tests: int
    corroborated: int | None

    @property
    def title(self) -> str:
        return self.skip_class.value.replace("_", " ")

    @property
    def meaning(self) -> str:
        return MEANINGS[self.skip_class]

    @property
    def left(self) -> int:
        """How many are the platform's own word alone."""
        return self.tests - (self.corroborated or 0)


@dataclass(frozen=True)
class Line(OfClass):
    """The skips of one reason."""

    reason: Reason

    @property
    def trust(self) -> Trust:
        """Corroborated only where every test of the line is."""
        return Trust.CORROBORATED if self.corroborated == self.tests else Trust.SELF_REPORTED

    @property
    def disabled_by(self) -> DisabledBy | None:
        return disabled_by(self.reason.text) if self.skip_class is SkipClass.DISABLED else None


@dataclass(frozen=True)
class Ledger:
    """Every skip of a report once. `lines`: most tests first; `witnesses`: the reports that could corroborate."""

    tests: int = 0
    lines: list[Line] = field(default_factory=list)
    witnesses: list[Report] = field(default_factory=list)

    @property
    def classes(self) -> list[OfClass]:
        """By class, in the table's order; classes without a skip are left out."""
        found = []
        for skip_class in SkipClass:
            lines = [line for line in self.lines if line.skip_class is skip_class]
            if lines:
                corroborated = sum(line.corroborated or 0 for line in lines)
                shown = corroborated if skip_class in CORROBORABLE else None
                found.append(OfClass(skip_class, sum(line.tests for line in lines), shown))
        return found


@dataclass(frozen=True)
class Skipped:
    """The skipped tests of a report and their reasons, row by row."""

    test: NDArray[np.int64]
    reason: NDArray[np.int32]


def skipped_of(report: Report) -> Skipped:
    """What a report skipped, renamed tests under their new numbers."""
    from apps.results import outcomes  # pyarrow: for the memory of those processes that are asked

    read = outcomes.read(report.outcomes_name, ("test", "outcome", "reason"))
    is_skip = read["outcome"] == Outcome.SKIPPED
    return Skipped(catalogue.renamed(read["test"][is_skip]), read["reason"][is_skip])


def ledger_of(report: Report) -> Ledger:
    """A ready report's skips. One query for the reasons, and two with a file for each witness."""
    skipped = skipped_of(report)
    witnesses = witnesses_of(report)
    is_borne_out = ran_in(skipped.test, [columns_of(witness) for witness in witnesses])
    numbers, at, counts = np.unique(skipped.reason, return_inverse=True, return_counts=True)
    borne_out = np.bincount(at, weights=is_borne_out, minlength=len(numbers))
    reasons = Reason.objects.in_bulk(numbers.tolist())
    lines = []
    for number, count, corroborated in zip(numbers.tolist(), counts.tolist(), borne_out.tolist(), strict=True):
        skip_class = classify(reasons[number].text)
        shown = int(corroborated) if skip_class in CORROBORABLE else None
        lines.append(Line(skip_class, count, shown, reasons[number]))
    lines.sort(key=lambda line: (-line.tests, line.reason.pk))
    return Ledger(len(skipped.test), lines, witnesses)


def witnesses_of(report: Report) -> list[Report]:
    """Public reports of other platforms at the same commit and variant: upstream's own platforms first."""
    others = [base.report for base in platforms_of(report, AnonymousUser()) if base.report is not None]
    others.sort(key=lambda other: other.platform.kind != Platform.Kind.IN_TREE)
    return others[:WITNESSES_MAX]


def ran_in(tests: NDArray[np.int64], reports: Sequence[Columns]) -> NDArray[np.bool_]:
    """Which of these tests at least one of the reports executed."""
    found = np.zeros(len(tests), np.bool_)
    for columns in reports:
        ran = columns.test[~np.isin(columns.outcome, NOT_RUN)]
        if len(ran):
            at = np.minimum(np.searchsorted(ran, tests), len(ran) - 1)
            found |= ran[at] == tests
    return found
