"""How much of what could be run a report ran: counted in the background, once a revision.

The whole is the reference's names (an in-tree platform's public report of the same commit and variant), else the names
that were reported here in the last 30 days. What a report does not name is missing, so deselecting tests lowers it.
"""

import contextlib
import datetime
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.contrib.postgres.fields import ArrayField
from django.db import transaction
from django.db.models import CharField, F, Func, Q, QuerySet, Value
from numpy.typing import NDArray

from apps.core.errors import Problem
from apps.platforms.models import Platform
from apps.results import catalogue
from apps.results.changes import ABSENT, union, word_of
from apps.results.compare import columns_of
from apps.results.enums import ReportFlag, ReportState
from apps.results.formats.cases import Outcome
from apps.results.models import Basis, Coverage, Reason, Report, Test
from apps.results.report_selectors import visible_to
from apps.results.skip_ledger import NOT_RUN, witnesses_of
from apps.results.skips import SkipClass, classify

SEEN_DAYS = 30
# So many of the newest reports here are read for the names that were seen.
SEEN_REPORTS_MAX = 30


@dataclass(frozen=True)
class Rule:
    """One rule about coverage: what is flagged past `limit` percentage points."""

    flag: ReportFlag
    limit: int
    says: str


RULES: tuple[Rule, ...] = (
    Rule(
        ReportFlag.COVERAGE_DROP,
        2,
        "The report executed less of its names than the one before, counted over the same kind of names, by more than "
        "the limit.",
    ),
)


def count_coverage(*, reports: int, now: datetime.datetime) -> int:
    """Count up to so many ready reports of the last SEEN_DAYS whose revision is not counted yet. Returns how many. One
    that is read anew meanwhile comes again."""
    from apps.results import outcomes  # pyarrow: for the memory of those processes that are asked

    since = now - datetime.timedelta(days=SEEN_DAYS)
    ready = Report.objects.filter(state=ReportState.READY, parsed_at__gte=since)
    waiting = ready.exclude(coverage__revision=F("revision")).select_related("repository__platform", "source__platform")
    found = list(waiting.order_by("parsed_at")[:reports])
    for report in found:
        with contextlib.suppress(outcomes.Gone):
            cover(report, now=now)
    return len(found)


def cover(report: Report, *, now: datetime.datetime) -> None:
    """Count one report's coverage, and flag a drop. A new reference has those that it is the reference of counted
    again."""
    reference = reference_of(report)
    own = _Tests.of(report)
    names = columns_of(reference).test if reference else _seen(report, own.test, Q())
    at, is_there = own.places_of(names)
    outcome, reason = own.outcome[at[is_there]], own.reason[at[is_there]]
    is_skip = outcome == Outcome.SKIPPED
    executed = int((~np.isin(outcome, NOT_RUN)).sum())
    skipped = int(is_skip.sum())
    values = {
        "revision": report.revision,
        "basis": Basis.REFERENCE if reference else Basis.SEEN,
        "reference": reference,
        "names": len(names),
        "executed": executed,
        "skipped": skipped,
        # Also what was lost, or ended nobody knows how.
        "missing": len(names) - executed - skipped,
        "classes": _by_class(reason[is_skip]),
        "skips": _by_class(own.reason[own.outcome == Outcome.SKIPPED]),
        "counted_at": now,
    }
    with transaction.atomic():
        coverage, _ = Coverage.objects.update_or_create(report=report, defaults=values)
        _set_flag(report, ReportFlag.COVERAGE_DROP, is_on=is_drop(coverage, before(coverage)))
        if report.platform.kind == Platform.Kind.IN_TREE and report.head_sha:
            others = Coverage.objects.filter(report__head_sha=report.head_sha, report__variant=report.variant)
            others.exclude(report=report).exclude(basis=Basis.REFERENCE).delete()


@dataclass(frozen=True)
class Unrun:
    """The names that a report did not run and did not skip, ascending, and how each stands there: ABSENT where the
    report does not name it, else lost or unknown."""

    test: NDArray[np.int64]
    how: NDArray[np.int8]

    def rows(self, start: int, end: int) -> list[tuple[Test, str]]:
        """Some of them, with the words of how. One query."""
        numbers = self.test[start:end].tolist()
        tests = Test.objects.in_bulk(numbers)
        words = [word_of(code) for code in self.how[start:end].tolist()]
        return [(tests[number], word) for number, word in zip(numbers, words, strict=True)]


def unrun_of(coverage: Coverage, user: Any) -> Unrun:
    """The names that stand behind a coverage's `missing`. Of the names seen here those that reports name which the user
    may see. Raises Problem `report_unready` where the reference was taken down meanwhile."""
    report, reference = coverage.report, coverage.reference
    if reference is not None and reference.state != ReportState.READY:
        raise Problem("report_unready", "The reference was taken down or is read anew: its names are not known.")
    own = _Tests.of(report)
    names = columns_of(reference).test if reference else _seen(report, own.test, visible_to(user))
    at, is_there = own.places_of(names)
    how = np.full(len(names), ABSENT, np.int8)
    how[is_there] = own.outcome[at[is_there]]
    is_unrun = np.isin(how, (ABSENT, Outcome.LOST, Outcome.UNKNOWN))
    return Unrun(names[is_unrun], how[is_unrun])


def reference_of(report: Report) -> Report | None:
    """The in-tree platform's public report of the same commit and variant that has the most tests; None without one."""
    in_tree = [other for other in witnesses_of(report) if other.platform.kind == Platform.Kind.IN_TREE]
    return max(in_tree, key=lambda other: (other.total or 0, other.pk), default=None)


def before(coverage: Coverage) -> Coverage | None:
    """The coverage of the newest earlier report of the same origin and variant from another run, over the same kind of
    names."""
    report = coverage.report
    earlier = Coverage.objects.filter(report__in=_own(report), basis=coverage.basis)
    earlier = earlier.filter(report__received_at__lte=report.received_at).exclude(report__run_id=report.run_id)
    return earlier.order_by("-report__received_at", "-report").first()


def is_drop(now: Coverage, earlier: Coverage | None) -> bool:
    """Whether RULES's limit is passed. Unknown is no drop."""
    if earlier is None or not now.names or not earlier.names:
        return False
    # In whole numbers: 0.02 is not exact.
    drop = earlier.executed * now.names - now.executed * earlier.names
    return drop * 100 > RULES[0].limit * earlier.names * now.names


def _own(report: Report) -> QuerySet[Report]:
    return Report.objects.filter(
        repository=report.repository, source=report.source, variant=report.variant, state=ReportState.READY
    )


def _seen(report: Report, own: NDArray[np.int64], who: Q) -> NDArray[np.int64]:
    since = report.received_at - datetime.timedelta(days=SEEN_DAYS)
    recent = _own(report).filter(who, received_at__gte=since, received_at__lte=report.received_at).exclude(pk=report.pk)
    names = own
    for other in recent[:SEEN_REPORTS_MAX]:
        names = union(names, columns_of(other).test)
    return names


@dataclass(frozen=True)
class _Tests:
    """A report's rows by test, ascending."""

    test: NDArray[np.int64]
    outcome: NDArray[np.int8]
    reason: NDArray[np.int32]

    def places_of(self, names: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Where each name would stand among these tests, and whether it does."""
        at = np.minimum(np.searchsorted(self.test, names), max(len(self.test) - 1, 0))
        return at, self.test[at] == names if len(self.test) else np.zeros(len(names), np.bool_)

    @classmethod
    def of(cls, report: Report) -> "_Tests":
        from apps.results import outcomes  # pyarrow: for the memory of those processes that are asked

        read = outcomes.read(report.outcomes_name, ("test", "outcome", "reason"))
        test = catalogue.renamed(read["test"])
        order = np.argsort(test, kind="stable")
        return cls(test[order], read["outcome"][order], read["reason"][order])


def _by_class(reasons: NDArray[np.int32]) -> dict[str, int]:
    numbers, counts = np.unique(reasons, return_counts=True)
    texts = Reason.objects.in_bulk(numbers.tolist())
    found: Counter[str] = Counter()
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        found[classify(texts[number].text).value] += count
    return {skip_class.value: found[skip_class.value] for skip_class in SkipClass if found[skip_class.value]}


def _set_flag(report: Report, flag: ReportFlag, *, is_on: bool) -> None:
    """Of a report that is not taken down meanwhile. Whoever looks at it is told of the change."""
    ready = Report.objects.filter(pk=report.pk, state=ReportState.READY)
    function = "array_append" if is_on else "array_remove"
    right = ready.exclude(flags__contains=[flag.value]) if is_on else ready.filter(flags__contains=[flag.value])
    right.update(flags=Func(F("flags"), Value(flag.value), function=function, output_field=ArrayField(CharField())))
