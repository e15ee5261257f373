"""Declaring whose working days a platform's deadlines are counted in."""

import datetime

from django.db import transaction

from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.services import Actor, Subject, record
from apps.core import workdays
from apps.platforms.models import Platform


@transaction.atomic
def declare_calendar(*, platform: Platform, calendar: str, actor: Actor, now: datetime.datetime) -> Event | None:
    """Count the platform's deadlines from now on in the working days of a calendar (core.workdays). Those that run keep
    the calendar that they were set by. Returns None, and writes nothing, where it is declared already.

    Raises Problem `malformed`, field `calendar`.
    """
    code = workdays.checked(calendar)
    locked = Platform.objects.select_for_update().get(pk=platform.pk)
    before = locked.calendar
    platform.calendar = code
    if before == code:
        return None
    Platform.objects.filter(pk=platform.pk).update(calendar=code)
    return record(
        action=Action.CALENDAR_DECLARED,
        actor=actor,
        subject=Subject("platform", locked.slug, locked.name),
        summary=f"Deadlines of {locked.name} are counted in {workdays.named(code)}",
        before={"calendar": before},
        after={"calendar": code},
        now=now,
    )
