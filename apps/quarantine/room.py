"""How much a platform may quarantine, and how much it has: counted over all its records, so that closing one and
making it again buys nothing."""

import datetime
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Q

from apps.platforms.models import Platform
from apps.quarantine import policy
from apps.quarantine.enums import State
from apps.quarantine.models import Member, Quarantine
from apps.quarantine.policy import EFFECTIVE, Rules
from apps.results.enums import ReportState
from apps.results.models import Exclusion, Report
from apps.results.namesakes import all_numbers
from apps.results.report_selectors import of_platform

# As whom results know what is written by this room.
SOURCE = "quarantine"
_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Room:
    """Of one platform and variant: tests in force and the cap; test-days of the budget's window that are used or given
    away (in force until they expire), and the budget. `suite`: tests of the last report, None where there is none."""

    suite: int | None
    in_force: int
    cap: int
    used_days: float
    budget_days: int


def last_report(platform: Platform, variant: str) -> Report | None:
    """The newest report of a platform's variant that was read."""
    ready = Report.objects.filter(of_platform(platform), variant=variant, state=ReportState.READY)
    return ready.order_by("-received_at", "-pk").first()


def room_of(platform: Platform, variant: str, rules: Rules, *, now: datetime.datetime) -> Room:
    """What a platform has used or given away, and may use."""
    report = last_report(platform, variant)
    suite = report.total if report else None
    begun = now - datetime.timedelta(hours=rules.budget_window)
    used = _days_since(platform, variant, begun)
    in_force = Member.objects.filter(
        platform=platform, variant=variant, is_open=True, quarantine__state__in=EFFECTIVE
    ).count()
    return Room(suite, in_force, policy.cap(suite or 0, rules), used, policy.budget(suite or 0, rules))


def _days_since(platform: Platform, variant: str, begun: datetime.datetime) -> float:
    """Test-days of everything that had effect since then, is to have it until it expires, or had it before it was
    reopened: what is given away cannot be given again."""
    held = Exclusion.objects.filter(source=SOURCE, platform=platform, variant=variant, until_at__gt=begun)
    spans = held.order_by().values_list("source_id", "pattern", "from_at", "until_at").annotate(Count("pk"))
    sizes = {str(pk): tests for pk, tests in _sizes(platform, variant)}
    return sum(
        (until - max(since, begun)) / _DAY * (sizes[source] if pattern else tests)
        for source, pattern, since, until, tests in spans
        if until is not None
    )


def _sizes(platform: Platform, variant: str) -> Iterable[tuple[uuid.UUID, int]]:
    """How many tests each pattern of theirs counts as."""
    return (
        Quarantine.objects.filter(platform=platform, variant=variant)
        .exclude(pattern="")
        .values_list("public_id", "tests")
    )


def earlier_of(
    platform: Platform, variant: str, tests: Iterable[int], pattern: str, rules: Rules, *, now: datetime.datetime
) -> list[Quarantine]:
    """Records that were in force for one of these tests, or for this pattern, within the budget's window and ended
    otherwise than by proof: a new one continues them, whatever it says. Newest first."""
    begun = now - datetime.timedelta(hours=rules.budget_window)
    same = Q(members__test__in=all_numbers(tests)) | (Q(pattern=pattern) if pattern else Q(pk=None))
    found = Quarantine.objects.filter(
        same,
        platform=platform,
        variant=variant,
        effective_from__isnull=False,
        ended_at__gte=begun,
        state__in=[State.EXPIRED, State.VANISHED, State.BROKEN],
    )
    return list(found.distinct().order_by("-ended_at", "-pk"))
