"""Which quarantines wait for somebody, for what, and who is next: the console's queue."""

import datetime
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q

from apps.platforms.models import Membership
from apps.platforms.selectors import member_platforms
from apps.quarantine.detection import NOBODY
from apps.quarantine.enums import State
from apps.quarantine.models import Quarantine
from apps.quarantine.policy import EFFECTIVE, OPEN
from apps.quarantine.selectors import may_decide, quarantines

_DECIDED_BY_MAINTAINERS = (State.UNCLEAR, State.RELEASE_PROPOSED)


@dataclass(frozen=True)
class Awaiting:
    """A quarantine that waits, `what` for, `who` is next, and since when."""

    quarantine: Quarantine
    what: str
    who: str
    since: datetime.datetime


def awaiting(user: Any, *, now: datetime.datetime, limit: int) -> list[Awaiting]:
    """What waits for this user, longest first. For who decides: what only maintainers do, what has no owner, and what
    is proposed where the platform has no member; for members what is proposed on their platforms. For both what should
    have ended. One query."""
    overdue = Q(state__in=EFFECTIVE, expires_at__lte=now)
    wanted = Q(platform__in=member_platforms(user)) & (Q(state=State.PROPOSED) | overdue)
    has_member = Exists(Membership.objects.filter(platform=OuterRef("platform")))
    if may_decide(user):
        ownerless = Q(state__in=OPEN, owner=NOBODY)
        unspoken = Q(~has_member, state=State.PROPOSED)
        wanted |= overdue | ownerless | Q(state__in=_DECIDED_BY_MAINTAINERS) | unspoken
    found = quarantines().filter(wanted).annotate(has_member=has_member).order_by("changed_at", "pk")[:limit]
    return [_told(quarantine, now) for quarantine in found]


def _told(quarantine: Quarantine, now: datetime.datetime) -> Awaiting:
    since = quarantine.changed_at
    if quarantine.state in EFFECTIVE and quarantine.expires_at is not None and quarantine.expires_at <= now:
        return Awaiting(quarantine, "its end: its time is over", "the hub, with its next sweep", quarantine.expires_at)
    if quarantine.state == State.UNCLEAR:
        return Awaiting(quarantine, "its platform's name", "the maintainers", since)
    if quarantine.state == State.RELEASE_PROPOSED:
        return Awaiting(quarantine, "its release, or a refusal", "the maintainers", since)
    if quarantine.owner == NOBODY:
        return Awaiting(quarantine, "an owner", "the maintainers", since)
    is_theirs = quarantine.has_member  # type: ignore[attr-defined]
    who = "the platform's members" if is_theirs else "the maintainers"
    return Awaiting(quarantine, "being put in force, or a refusal", who, since)
