"""Reads of platforms, and the access functions through which every edge gets one."""

from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Max, Prefetch, QuerySet
from django.http import Http404

from apps.accounts.policy import allows_on_own_platform
from apps.core.permissions import Permission
from apps.platforms.allowlist import FULL_NAME
from apps.platforms.models import Membership, Platform, Repository


def platforms_listed() -> QuerySet[Platform]:
    """Platforms with at least one repository on the allowlist, each with `top_level` and its listed repositories."""
    listed = Repository.objects.filter(level__gt=0).order_by("-level", "full_name")
    return (
        Platform.objects.annotate(top_level=Max("repositories__level"))
        .filter(top_level__gt=0)
        .prefetch_related(Prefetch("repositories", queryset=listed))
        .order_by("-top_level", "name")
    )


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


@dataclass(frozen=True)
class Standing:
    """A repository as the callback path needs it. `github_id` is None while it is not pinned."""

    repository_id: int
    full_name: str
    level: int
    github_id: int | None
    github_owner_id: int | None


def standing_of(*, github_id: int, full_name: str) -> Standing | None:
    """The repository that an identity means: the one pinned to this id, else the one of this name, else None."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, full_name, level, github_id, github_owner_id FROM platforms_repository "
            "WHERE github_id = %s OR lower(full_name) = lower(%s) "
            "ORDER BY (github_id IS NOT DISTINCT FROM %s) DESC LIMIT 1",
            [github_id, full_name, github_id],
        )
        row = cursor.fetchone()
    return Standing(*row) if row else None
