"""Reads of platforms, and the access functions through which every edge gets one."""

import datetime
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, Max, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import Lower
from django.http import Http404

from apps.accounts.policy import allows_on_own_platform
from apps.accounts.services import digest_of
from apps.core.permissions import Permission
from apps.core.statements import prepared
from apps.platforms import authority
from apps.platforms.allowlist import FULL_NAME, Entry
from apps.platforms.enums import OPEN_EDITS, PUT_BACK, DemotionState
from apps.platforms.models import (
    AllowlistAlarm,
    AllowlistEdit,
    Demotion,
    Invitation,
    LevelInterval,
    MaintenanceWindow,
    Membership,
    NameChange,
    Platform,
    Repository,
    UpstreamFile,
)
from apps.platforms.policy import PUBLIC_FROM, STABLE, UNLISTED
from apps.platforms.sync_policy import PUT_BACK_SHOWN_FOR


def platforms_listed() -> QuerySet[Platform]:
    """Platforms with at least one repository on the allowlist that is no probe, each with `top_level` and those
    repositories."""
    listed = Repository.objects.filter(level__gt=0, is_probe=False).order_by("-level", "full_name")
    return (
        Platform.objects.annotate(top_level=Max("repositories__level", filter=Q(repositories__is_probe=False)))
        .filter(top_level__gt=0)
        .prefetch_related(Prefetch("repositories", queryset=listed))
        .order_by("-top_level", "name", "slug")
    )


def probes() -> QuerySet[Repository]:
    """The repositories that test the hub itself, by name."""
    return Repository.objects.filter(is_probe=True).select_related("platform").order_by("full_name")


@dataclass(frozen=True)
class PlatformFilters:
    """What the directory shows. Each of the first few `words` stands in a platform's or a listed repository's name."""

    words: str = ""
    level: int | None = None
    kind: str = ""
    sort: str = "-level"


WORDS_LOOKED_FOR = 5
PLATFORM_ORDERS = {
    "name": (Lower("name"), "pk"),
    "-name": (Lower("name").desc(), "-pk"),
    "level": ("top_level", Lower("name"), "pk"),
    "-level": ("-top_level", Lower("name"), "pk"),
}


def platforms_found(filters: PlatformFilters) -> QuerySet[Platform]:
    """The listed platforms that fit. One fits a level when any of its repositories is at it."""
    found = platforms_listed().order_by(*PLATFORM_ORDERS[filters.sort])
    listed = Repository.objects.filter(platform=OuterRef("pk"), level__gt=0, is_probe=False)
    for word in list(dict.fromkeys(filters.words.split()))[:WORDS_LOOKED_FOR]:
        found = found.filter(Q(name__icontains=word) | Exists(listed.filter(full_name__icontains=word)))
    if filters.level is not None:
        found = found.filter(Exists(listed.filter(level=filters.level)))
    return found.filter(kind=filters.kind) if filters.kind else found


def repositories_found(filters: PlatformFilters) -> QuerySet[Repository]:
    """The listed repositories that fit, by name; probes are none. Each of the first few words stands in its name or its
    platform's."""
    found = Repository.objects.filter(level__gt=UNLISTED, is_probe=False).select_related("platform")
    for word in list(dict.fromkeys(filters.words.split()))[:WORDS_LOOKED_FOR]:
        found = found.filter(Q(full_name__icontains=word) | Q(platform__name__icontains=word))
    if filters.level is not None:
        found = found.filter(level=filters.level)
    if filters.kind:
        found = found.filter(platform__kind=filters.kind)
    return found.order_by("full_name", "pk")


def platform_or_404(slug: str) -> Platform:
    """A platform by its slug: all platforms are public."""
    try:
        return Platform.objects.get(slug=slug)
    except Platform.DoesNotExist:
        raise Http404 from None


def repository_or_404(owner: str, name: str) -> Repository:
    """A repository by its name, in any case of letters, or by the name it had before GitHub confirmed another: an
    address that somebody kept still leads to it. All repositories are public."""
    full_name = f"{owner}/{name}"
    if not FULL_NAME.fullmatch(full_name):  # an address can spell what PostgreSQL cannot even compare
        raise Http404
    known = Repository.objects.select_related("platform")
    found = known.filter(full_name__iexact=full_name).first() or _formerly(known, full_name)
    if found is None:
        raise Http404
    return found


def _formerly(known: QuerySet[Repository], full_name: str) -> Repository | None:
    """The latest of the repositories that bore a name."""
    bore = known.filter(name_changes__old_name__iexact=full_name, name_changes__confirmed_at__isnull=False)
    return bore.order_by("-name_changes__confirmed_at", "-name_changes__pk").first()


def former_names() -> dict[str, str]:
    """Names, in lower case, that repositories had before GitHub confirmed another, with what they are called now. The
    latest bearer counts; a name that some repository bears at present is nobody's former one."""
    confirmed = NameChange.objects.exclude(confirmed_at=None).order_by("confirmed_at", "pk")
    names = confirmed.values_list("old_name", "repository__full_name")
    present = {name.lower() for name in Repository.objects.values_list("full_name", flat=True)}
    return {old.lower(): new for old, new in names if old.lower() not in present}


def may_on_platform(user: Any, permission: Permission, platform: Platform) -> bool:
    """Whether the user has a permission on one platform: by a role, or as its member."""
    if user.is_anonymous or not user.is_active:
        return False
    if user.may(permission):
        return True
    return allows_on_own_platform(permission) and Membership.objects.filter(platform=platform, user=user).exists()


def judged_or_404(owner: str, name: str, user: Any) -> Repository:
    """A listed repository of which this user may see how it fares: its evaluation, its replay. Below L2 that is its
    platform's members, and who decides about its level: what it says there is private."""
    repository = repository_or_404(owner, name)
    if repository.level == UNLISTED:
        raise Http404
    decides = user.is_authenticated and user.may(Permission.LEVEL_CHANGE)
    if repository.level >= PUBLIC_FROM or decides:
        return repository
    if not may_on_platform(user, Permission.CALLBACK_VIEW_PRIVATE, repository.platform):
        raise Http404
    return repository


def member_platforms(user: Any) -> QuerySet[Platform]:
    """The platforms that a signed-in user speaks for."""
    return Platform.objects.filter(memberships__user=user)


def memberships_of(platform: Platform) -> QuerySet[Membership]:
    """Who speaks for a platform, with their organisation, by name."""
    members = Membership.objects.filter(platform=platform).select_related("user__organisation")
    return members.order_by("user__username")


def platforms_by_member(user_ids: Iterable[int]) -> dict[int, list[Platform]]:
    """The platforms that each of these users speaks for, by name. Who speaks for none is not in it."""
    found: dict[int, list[Platform]] = {}
    members = (
        Membership.objects.filter(user_id__in=list(user_ids)).select_related("platform").order_by("platform__name")
    )
    for member in members:
        found.setdefault(member.user_id, []).append(member.platform)
    return found


def member_or_404(platform: Platform, public_id: str) -> Any:
    """A user who speaks for the platform, by their public id."""
    try:
        return memberships_of(platform).get(user__public_id=uuid.UUID(public_id)).user
    except (Membership.DoesNotExist, ValueError):
        raise Http404 from None


def invitation_or_404(code: str) -> Invitation:
    """The invitation that a link's code opens, whatever became of it: who has the code was given it."""
    try:
        return Invitation.objects.select_related("platform", "invited_by").get(digest=digest_of(code))
    except Invitation.DoesNotExist:
        raise Http404 from None


def open_invitations(platform: Platform, *, now: datetime.datetime) -> QuerySet[Invitation]:
    """Invitations that someone may still accept, newest first."""
    still_open = Invitation.objects.filter(platform=platform, accepted_at=None, withdrawn_at=None, expires_at__gt=now)
    return still_open.select_related("invited_by").order_by("-created_at", "-pk")


def own_invitation_or_404(platform: Platform, public_id: str) -> Invitation:
    """An invitation to this platform, for those who may withdraw it."""
    try:
        return Invitation.objects.select_related("platform").get(platform=platform, public_id=uuid.UUID(public_id))
    except (Invitation.DoesNotExist, ValueError):
        raise Http404 from None


def open_windows(*, now: datetime.datetime) -> QuerySet[MaintenanceWindow]:
    """Maintenance windows that are open now, of every repository."""
    return MaintenanceWindow.objects.filter(withdrawn_at=None, starts_at__lte=now, ends_at__gt=now)


def level_then(column: str) -> Subquery:
    """Of a row with a `repository`: the level that it was at, at the time in the column; None where the hub knows of
    none."""
    at = OuterRef(column)
    intervals = LevelInterval.objects.filter(repository=OuterRef("repository"), started_at__lte=at)
    return Subquery(intervals.filter(Q(ended_at=None) | Q(ended_at__gt=at)).values("level")[:1])


def windows_of(platform: Platform, *, now: datetime.datetime) -> QuerySet[MaintenanceWindow]:
    """A platform's maintenance windows that are open or to come, in order."""
    found = MaintenanceWindow.objects.filter(repository__platform=platform, withdrawn_at=None, ends_at__gt=now)
    return found.select_related("repository").order_by("starts_at", "pk")


def window_or_404(repository: Repository, public_id: str) -> MaintenanceWindow:
    """A maintenance window of this repository, by its public id."""
    try:
        return MaintenanceWindow.objects.get(repository=repository, public_id=uuid.UUID(public_id))
    except (MaintenanceWindow.DoesNotExist, ValueError):
        raise Http404 from None


def entry_of(repository: Repository) -> Entry:
    """A repository as the allowlist file says it; at level 0 what the hub knows of one that is not listed."""
    device = repository.device if repository.level == STABLE else ""
    oncalls, events = tuple(repository.oncalls), frozenset(repository.events)
    return Entry(repository.level, repository.full_name, device, oncalls, events)


def listing() -> list[Entry]:
    """The allowlist as it is in force: by level, at L3 by device, then by name, so that equal lists are equal files."""
    listed = Repository.objects.filter(level__gt=UNLISTED)
    return sorted(map(entry_of, listed), key=lambda entry: (entry.level, entry.device, entry.key))


def known_entries() -> list[Entry]:
    """Every repository the hub knows as an entry, those that are not listed at level 0; the longest known first."""
    return [entry_of(repository) for repository in Repository.objects.order_by("pk")]


def open_alarm() -> AllowlistAlarm | None:
    """Why the allowlist file is not taken as upstream shows it; None while it is."""
    return AllowlistAlarm.objects.filter(cleared_at=None).first()


def upstream_file() -> UpstreamFile | None:
    """The last good copy of upstream's file; None before the first round."""
    return UpstreamFile.objects.first()


def edits_to_show(*, now: datetime.datetime, repository_ids: Iterable[int] | None = None) -> list[AllowlistEdit]:
    """Decisions that wait for upstream's file, and those put back lately that nobody decided anew: longest waiting
    first. None where the hub itself owns the allowlist."""
    if not authority.is_file():
        return []
    newer = AllowlistEdit.objects.filter(repository=OuterRef("repository"), event_seq__gt=OuterRef("event_seq"))
    put_back = Q(state__in=PUT_BACK, changed_at__gt=now - PUT_BACK_SHOWN_FOR) & ~Exists(newer)
    found = AllowlistEdit.objects.filter(Q(state__in=OPEN_EDITS) | put_back)
    if repository_ids is not None:
        found = found.filter(repository_id__in=list(repository_ids))
    return list(found.select_related("repository__platform").order_by("event_seq"))


def open_demotions(repository_ids: Iterable[int] | None = None) -> list[Demotion]:
    """Upstream's own demotion pull requests that are open, oldest first. None where the hub owns the allowlist."""
    if not authority.is_file():
        return []
    found = Demotion.objects.filter(state=DemotionState.OPEN)
    if repository_ids is not None:
        found = found.filter(repository_id__in=list(repository_ids))
    return list(found.select_related("repository__platform").order_by("opened_at", "pk"))


def waiting_upstream(*, now: datetime.datetime) -> int:
    """How much about upstream's file needs somebody: decisions that wait for it or were put back, its own demotions,
    and whether it is not taken. None of it where the hub owns the allowlist."""
    if not authority.is_file():
        return 0
    return len(edits_to_show(now=now)) + len(open_demotions()) + (open_alarm() is not None)


def open_edit_of(repository: Repository) -> AllowlistEdit | None:
    """The decision about a repository that waits for upstream's file; None without one."""
    return AllowlistEdit.objects.filter(repository=repository, state__in=OPEN_EDITS).first()


def edit_of_decision(event_seq: int | None) -> AllowlistEdit | None:
    """What became of a decision that waits, or waited, for upstream's file; None for one that was in force at once."""
    return AllowlistEdit.objects.filter(event_seq=event_seq).first() if event_seq else None


def has_open_demotion(repository_id: int) -> bool:
    """Whether upstream's own demotion pull request about a repository is open: then it gets no new check runs, and
    those that are open still finish. Asks nothing where the hub itself owns the allowlist."""
    if not authority.is_file():
        return False
    return Demotion.objects.filter(repository_id=repository_id, state=DemotionState.OPEN).exists()


@dataclass(frozen=True)
class Standing:
    """A repository as the callback path needs it. `github_id` is None while it is not pinned."""

    repository_id: int
    full_name: str
    level: int
    github_id: int | None
    github_owner_id: int | None


def standing_of(*, github_id: int, full_name: str) -> Standing | None:
    """The repository that an identity means: the one pinned to this id, else the one of this name, else None.

    A listed one goes before an unlisted one: a repository that was renamed and listed anew is the listed one.
    """
    with prepared() as cursor:
        cursor.execute(
            "SELECT id, full_name, level, github_id, github_owner_id FROM platforms_repository "
            "WHERE github_id = %(id)s OR lower(full_name) = lower(%(name)s) "
            "ORDER BY level > 0 DESC, (github_id IS NOT DISTINCT FROM %(id)s) DESC LIMIT 1",
            {"id": github_id, "name": full_name},
        )
        row = cursor.fetchone()
    return Standing(*row) if row else None
