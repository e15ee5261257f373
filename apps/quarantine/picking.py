"""What a report offers to be quarantined: its red and flaky tests that stand in no open record."""

from dataclasses import dataclass

from apps.quarantine.models import Member
from apps.results.exclusions import RED
from apps.results.formats.cases import Outcome
from apps.results.models import Report, Test

OFFERED_MAX = 300


@dataclass(frozen=True)
class Picking:
    """`offered` by file, class and name; `standing`: how many stand in an open quarantine already; `left`: how many are
    more than can be offered."""

    report: Report
    offered: list[Test]
    standing: int
    left: int


def picking_of(report: Report) -> Picking:
    """Of one report's findings. Three queries."""
    wrong = report.findings.filter(outcome__in=[*RED, Outcome.FLAKY.label]).values("test")
    standing = Member.objects.filter(platform=report.platform, variant=report.variant, is_open=True)
    tests = Test.objects.filter(pk__in=wrong)
    free = tests.exclude(pk__in=standing.values("test"))
    total = free.count()
    offered = list(free.order_by("file", "class_name", "name", "pk")[:OFFERED_MAX])
    return Picking(report, offered, tests.filter(pk__in=standing.values("test")).count(), total - len(offered))
