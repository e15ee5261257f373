"""Reads of platforms, and the access functions through which every edge gets one."""

import datetime
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, Max, OuterRef, Prefetch, Q, QuerySet
from django.db.models.functions import Lower
from django.http import Http404

from apps.accounts.policy import allows_on_own_platform
from apps.accounts.services import digest_of
from apps.core.permissions import Permission
from apps.core.statements import prepared
from apps.platforms.allowlist import FULL_NAME
from apps.platforms.models import Invitation, Membership, NameChange, Platform, Repository


def platforms_listed() -> QuerySet[Platform]:
    """Platforms with at least one repository on the allowlist, each with `top_level` and its listed repositories."""
    listed = Repository.objects.filter(level__gt=0).order_by("-level", "full_name")
    return (
        Platform.objects.annotate(top_level=Max("repositories__level"))
        .filter(top_level__gt=0)
        .prefetch_related(Prefetch("repositories", queryset=listed))
        .order_by("-top_level", "name", "slug")
    )


@dataclass(frozen=True)
class PlatformFilters:
    """What the directory shows. Every one of `words` stands in the platform's name or in a listed repository's."""

    words: str = ""
    level: int | None = None
    kind: str = ""
    sort: str = "-level"


PLATFORM_ORDERS = {
    "name": (Lower("name"), "pk"),
    "-name": (Lower("name").desc(), "-pk"),
    "level": ("top_level", Lower("name"), "pk"),
    "-level": ("-top_level", Lower("name"), "pk"),
}


def platforms_found(filters: PlatformFilters) -> QuerySet[Platform]:
    """The listed platforms that fit. One fits a level when any of its repositories is at it."""
    found = platforms_listed().order_by(*PLATFORM_ORDERS[filters.sort])
    listed = Repository.objects.filter(platform=OuterRef("pk"), level__gt=0)
    for word in filters.words.split():
        found = found.filter(Q(name__icontains=word) | Exists(listed.filter(full_name__icontains=word)))
    if filters.level is not None:
        found = found.filter(Exists(listed.filter(level=filters.level)))
    return found.filter(kind=filters.kind) if filters.kind else found


def platform_or_404(slug: str) -> Platform:
    """A platform by its slug: all platforms are public."""
    try:
        return Platform.objects.get(slug=slug)
    except Platform.DoesNotExist:
        raise Http404 from None


def repository_or_404(owner: str, name: str) -> Repository:
    """A repository by its name, in any case of letters: all repositories are public."""
    full_name = f"{owner}/{name}"
    if not FULL_NAME.fullmatch(full_name):  # an address can spell what PostgreSQL cannot even compare
        raise Http404
    try:
        return Repository.objects.select_related("platform").get(full_name__iexact=full_name)
    except Repository.DoesNotExist:
        raise Http404 from None


def former_names() -> dict[str, int]:
    """Names, in lower case, that repositories (primary keys) had before GitHub confirmed another. The latest bearer
    counts."""
    confirmed = NameChange.objects.exclude(confirmed_at=None).order_by("confirmed_at", "pk")
    return {old_name.lower(): pk for old_name, pk in confirmed.values_list("old_name", "repository")}


def may_on_platform(user: Any, permission: Permission, platform: Platform) -> bool:
    """Whether the user has a permission on one platform: by a role, or as its member."""
    if user.is_anonymous or not user.is_active:
        return False
    if user.may(permission):
        return True
    return allows_on_own_platform(permission) and Membership.objects.filter(platform=platform, user=user).exists()


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
