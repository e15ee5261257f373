"""Two reports of one variant beside each other: whether they can be compared, and the rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from apps.core.errors import Problem
from apps.results import catalogue
from apps.results.changes import MEANINGS, Change, Columns, Compared, change_at, compare, word_of
from apps.results.enums import ReportState
from apps.results.exclusions import RED, excluded
from apps.results.models import Exclusion, Finding, Report, Test


@dataclass(frozen=True)
class Row:
    """One test of a comparison. `message` is what the later report says of it, '' where it says nothing;
    `exclusion`: by what its red there is listed apart."""

    test: Test
    change: Change
    before: str
    after: str
    message: str
    exclusion: Exclusion | None

    @property
    def tone(self) -> str:
        return MEANINGS[self.change][0]


def check_comparable(base: Report, head: Report) -> None:
    """Raises Problem where two reports cannot be compared: `malformed` (one and the same), `report_removed`,
    `report_unready`, `variants_differ`."""
    if base.pk == head.pk:
        raise Problem("malformed", "head: it is the base too; name another report.", "head")
    for name, report in (("base", base), ("head", head)):
        if report.state == ReportState.REMOVED:
            raise Problem("report_removed", f"{name}: this report was taken down; compare with another.", name)
        if report.state == ReportState.FAILED:
            raise Problem("report_unready", f"{name}: the hub could not read it: {report.failure}", name)
        if report.state != ReportState.READY:
            raise Problem("report_unready", f"{name}: this report is {report.get_state_display()}, not ready.", name)
    if base.variant != head.variant:
        raise Problem(
            "variants_differ",
            f"base: its variant is {base.variant}, the head's is {head.variant}; compare reports of one variant.",
            "base",
        )


def compared(base: Report, head: Report) -> Compared:
    """What changed from `base` to `head`, renamed tests under their new names. Raises Problem (check_comparable)."""
    check_comparable(base, head)
    return compare(columns_of(base), columns_of(head))


def columns_of(report: Report) -> Columns:
    """A report's tests and how each ended, renamed ones under their new numbers."""
    from apps.results import outcomes  # pyarrow: for the memory of those processes that are asked

    read = outcomes.read(report.outcomes_name)
    return Columns.of(catalogue.renamed(read["test"]), read["outcome"])


def rows_of(found: Compared, places: Iterable[Any], head: Report) -> list[Row]:
    """The rows at these places, in their order. Four queries."""
    at_places = [int(at) for at in places]
    numbers = [int(found.test[at]) for at in at_places]
    tests = Test.objects.in_bulk(numbers)
    messages = _messages(head, numbers)
    red = [number for at, number in zip(at_places, numbers, strict=True) if word_of(int(found.after[at])) in RED]
    apart = excluded(head, [tests[number] for number in red])
    return [
        Row(
            test=tests[number],
            change=change_at(found, at),
            before=word_of(int(found.before[at])),
            after=word_of(int(found.after[at])),
            message=messages.get(number, ""),
            exclusion=apart.get(number),
        )
        for at, number in zip(at_places, numbers, strict=True)
    ]


def messages_of(reports: Iterable[Report], numbers: Iterable[int]) -> dict[int, str]:
    """By report, what its finding about one test (under any of its numbers) says."""
    found = Finding.objects.filter(report__in=list(reports), test__in=list(numbers))
    return dict(found.values_list("report_id", "message"))


def _messages(report: Report, numbers: list[int]) -> dict[int, str]:
    earlier = catalogue.earlier_names(numbers)
    said = Finding.objects.filter(report=report, test__in=[*numbers, *earlier]).values_list("test_id", "message")
    return {earlier.get(number, number): message for number, message in said}
