"""What is known of one test's flakiness on a variant: its flakes, its quarantines, where it is red in every run."""

from dataclasses import dataclass
from typing import Any

from apps.quarantine.models import FlakeEvent, Member, Quarantine, Streak
from apps.quarantine.selectors import quarantines, visible_to
from apps.results import catalogue
from apps.results.models import Report, Test
from apps.results.report_selectors import visible_to as reports_visible_to

SHOWN = 10


@dataclass(frozen=True)
class OfTest:
    """The newest of each, as far as the user may see them. `flakes_total`: how many flakes there are."""

    flakes: list[FlakeEvent]
    flakes_total: int
    quarantines: list[Quarantine]
    streaks: list[Streak]

    @property
    def is_empty(self) -> bool:
        return not (self.flakes or self.quarantines or self.streaks)


def of_test(test: Test, variant: str, user: Any) -> OfTest:
    """Under its newest name and its earlier ones, on all platforms. Five queries."""
    numbers = [test.pk, *catalogue.earlier_names([test.pk])]
    reports = Report.objects.filter(reports_visible_to(user))
    flakes = FlakeEvent.objects.filter(test__in=numbers, variant=variant, report__in=reports)
    records = Member.objects.filter(test__in=numbers, variant=variant).values("quarantine")
    streaks = Streak.objects.filter(test__in=numbers, variant=variant, since__in=reports, last__in=reports)
    return OfTest(
        list(flakes.select_related("platform", "report", "other")[:SHOWN]),
        flakes.count(),
        list(quarantines().filter(visible_to(user), pk__in=records)[:SHOWN]),
        list(streaks.select_related("platform", "since", "last")[:SHOWN]),
    )
