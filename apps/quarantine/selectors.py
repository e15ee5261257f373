"""Reads of quarantines, and the access functions through which every edge gets one."""

import datetime
import uuid
from collections import Counter
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Lower
from django.http import Http404

from apps.accounts.models import User
from apps.core.permissions import Permission
from apps.platforms.models import Platform, Repository
from apps.platforms.policy import PUBLIC_FROM
from apps.platforms.selectors import may_on_platform, member_platforms
from apps.quarantine.enums import State
from apps.quarantine.models import FlakeEvent, Member, Quarantine
from apps.quarantine.policy import EFFECTIVE, OPEN
from apps.results.models import Report
from apps.results.namesakes import all_numbers
from apps.results.report_selectors import visible_to as reports_visible_to

_LISTED = Repository.objects.filter(platform=OuterRef("platform"), level__gte=PUBLIC_FROM)


def visible_to(user: Any) -> Q:
    """Quarantines of a platform are public as its results are: in tree, or from L2 up. Below that, and where no
    platform is known yet, they are its members' and the maintainers'."""
    public = Q(platform__kind=Platform.Kind.IN_TREE) | Q(Exists(_LISTED))
    if user.is_anonymous or not user.is_active:
        return public
    if user.may(Permission.QUARANTINE_CHANGE):
        return Q()
    return public | Q(platform__in=member_platforms(user))


def quarantines() -> QuerySet[Quarantine]:
    """Every quarantine with what it stands on, and the name of its first test."""
    first = Member.objects.filter(quarantine=OuterRef("pk")).order_by("test").values("test__name")[:1]
    return Quarantine.objects.select_related("platform", "previous", "progress").annotate(first_test=Subquery(first))


def quarantine_or_404(public_id: uuid.UUID, user: Any) -> Quarantine:
    """A quarantine that this user may see; for all others it does not exist."""
    found = quarantines().filter(visible_to(user), public_id=public_id).first()
    if found is None:
        raise Http404
    return found


def may_change(user: Any, platform: Platform | None) -> bool:
    """Whether the user may propose, put in force and renew here: a maintainer anywhere, a member on the own platform.
    Where no platform is known only maintainers may."""
    if platform is None:
        return bool(user.is_authenticated and user.is_active and user.may(Permission.QUARANTINE_CHANGE))
    return may_on_platform(user, Permission.QUARANTINE_CHANGE, platform)


def may_decide(user: Any) -> bool:
    """Whether caps do not bind the user, who releases and refuses releases."""
    return bool(user.is_authenticated and user.is_active and user.may(Permission.QUARANTINE_DECIDE))


def readers_of(quarantine: Quarantine) -> QuerySet[User]:
    """Whom it concerns: its platform's members, and, where it is public, the oncalls of the platform's repositories, as
    far as they have signed in here."""
    concerned = Q(memberships__platform=quarantine.platform_id)
    if Quarantine.objects.filter(visible_to(AnonymousUser()), pk=quarantine.pk).exists():
        lists = Repository.objects.filter(platform=quarantine.platform_id).values_list("oncalls", flat=True)
        concerned |= Q(login__in={login.lower() for oncalls in lists for login in oncalls})
    found = User.objects.alias(login=Lower("github_login")).filter(concerned).values("pk")
    return User.objects.filter(pk__in=found, is_active=True)


def listed(user: Any, *, now: datetime.datetime) -> QuerySet[Quarantine]:
    """What the user may see: overdue first, then open ones by their end, then the ended, newest first."""
    overdue = When(state__in=EFFECTIVE, expires_at__lte=now, then=Value(0))
    rank = Case(overdue, When(state__in=OPEN, then=Value(1)), default=Value(2))
    return quarantines().filter(visible_to(user)).order_by(rank, "expires_at", "-changed_at", "-pk")


def members_of(quarantine: Quarantine) -> QuerySet[Member]:
    """Its tests, by name."""
    return (
        Member.objects.filter(quarantine=quarantine).select_related("test").order_by("test__file", "test__name", "pk")
    )


# What a quarantine waits for people to decide, by the filter's word: its state, and the words.
WAITING: dict[str, tuple[State, str]] = {
    "release": (State.RELEASE_PROPOSED, "to be released, or kept"),
    "platform": (State.UNCLEAR, "for its platform's name"),
    "start": (State.PROPOSED, "to be put in force, or declined"),
}
# What of it maintainers alone decide (verbs.OFFERS).
_FOR_MAINTAINERS = ("release", "platform")


def waiting_counts(user: Any) -> list[tuple[str, str, int]]:
    """What waits for the decision of whoever may decide, where there is any: (key of WAITING, words, how many)."""
    if not may_decide(user):
        return []
    states = {key: WAITING[key][0] for key in _FOR_MAINTAINERS}
    counts = Counter(Quarantine.objects.filter(state__in=states.values()).order_by().values_list("state", flat=True))
    return [(key, WAITING[key][1], counts[state]) for key, state in states.items() if counts[state]]


def found(user: Any, given: dict[str, Any], *, now: datetime.datetime) -> QuerySet[Quarantine]:
    """`listed`, narrowed by `platform` (a slug), `state`, `owner` and `waiting` (a key of WAITING)."""
    wanted = Q()
    if slug := given.get("platform"):
        wanted &= Q(platform__slug=slug)
    if state := given.get("state"):
        wanted &= Q(state=state)
    if waiting := given.get("waiting"):
        wanted &= Q(state=WAITING[waiting][0])
    if owner := given.get("owner"):
        wanted &= Q(owner__iexact=owner)
    return listed(user, now=now).filter(wanted)


FLAKES_SHOWN = 50


def flakes_of(quarantine: Quarantine, user: Any) -> list[FlakeEvent]:
    """The newest evidence about its tests, of reports that the user may see."""
    tests = all_numbers(Member.objects.filter(quarantine=quarantine).values_list("test_id", flat=True))
    events = FlakeEvent.objects.filter(platform=quarantine.platform, variant=quarantine.variant, test__in=tests)
    seen = events.filter(report__in=Report.objects.filter(reports_visible_to(user)))
    return list(seen.select_related("test", "report", "other")[:FLAKES_SHOWN])
