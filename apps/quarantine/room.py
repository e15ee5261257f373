"""How much a platform may quarantine, and how much it has: counted over all its records, so that closing one and
making it again buys nothing."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from apps.platforms.models import Platform
from apps.quarantine import policy
from apps.quarantine.enums import State
from apps.quarantine.models import Member, Quarantine
from apps.quarantine.policy import EFFECTIVE, Rules
from apps.results.enums import ReportState
from apps.results.models import Report

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Room:
    """Of one platform and variant: tests in force and the cap; test-days used within the budget's window and the
    budget. `suite`: tests of the last report, None where there is none."""

    suite: int | None
    in_force: int
    cap: int
    used_days: float
    budget_days: int


def last_report(platform: Platform, variant: str) -> Report | None:
    """The newest report of a platform's variant that was read."""
    of = Q(repository__platform=platform) | Q(source__platform=platform)
    return Report.objects.filter(of, variant=variant, state=ReportState.READY).order_by("-received_at", "-pk").first()


def room_of(platform: Platform, variant: str, rules: Rules, *, now: datetime.datetime) -> Room:
    """What a platform has used, and may use."""
    report = last_report(platform, variant)
    suite = report.total if report else None
    begun = now - datetime.timedelta(hours=rules.budget_window)
    records = Quarantine.objects.filter(platform=platform, variant=variant, effective_from__isnull=False)
    overlapping = records.exclude(ended_at__lte=begun).filter(effective_from__lt=now)
    used = 0.0
    for record in overlapping.only("effective_from", "ended_at", "tests"):
        assert record.effective_from is not None
        until = min(record.ended_at or now, now)
        used += (until - max(record.effective_from, begun)) / _DAY * record.tests
    in_force = Member.objects.filter(
        platform=platform, variant=variant, is_open=True, quarantine__state__in=EFFECTIVE
    ).count()
    return Room(suite, in_force, policy.cap(suite or 0, rules), used, policy.budget(suite or 0, rules))


def earlier_of(
    platform: Platform, variant: str, tests: Iterable[int], pattern: str, rules: Rules, *, now: datetime.datetime
) -> list[Quarantine]:
    """Records that were in force for one of these tests, or for this pattern, within the budget's window and ended
    otherwise than by proof: a new one continues them, whatever it says. Newest first."""
    begun = now - datetime.timedelta(hours=rules.budget_window)
    same = Q(members__test__in=list(tests)) | (Q(pattern=pattern) if pattern else Q(pk=None))
    found = Quarantine.objects.filter(
        same,
        platform=platform,
        variant=variant,
        effective_from__isnull=False,
        ended_at__gte=begun,
        state__in=[State.EXPIRED, State.VANISHED, State.BROKEN],
    )
    return list(found.distinct().order_by("-ended_at", "-pk"))
