"""Reads of users, and the access functions through which every edge gets one."""

import datetime
import uuid

from django.db.models import Q, QuerySet
from django.http import Http404

from apps.accounts.models import ApiToken, Organisation, User, UserSession
from apps.accounts.policy import ROLES, Role
from apps.core.permissions import Permission


def people(query: str = "") -> QuerySet[User]:
    """Everyone with an account, by name; only those whose name, GitHub login or organisation has `query` in it."""
    found = User.objects.select_related("organisation").prefetch_related("role_grants").order_by("username")
    if query:
        found = found.filter(
            Q(username__icontains=query)
            | Q(github_login__icontains=query)
            | Q(organisation__name__icontains=query)
            | Q(organisation__slug__icontains=query)
        )
    return found


def holders(permission: Permission) -> QuerySet[User]:
    """Everyone whose role gives them a permission."""
    roles = [role for role, row in ROLES.items() if permission in row.permissions]
    return User.objects.filter(is_active=True, role_grants__role__in=roles).distinct()


def person_or_404(public_id: uuid.UUID) -> User:
    """A user by their public id: for those who may change users."""
    try:
        return people().get(public_id=public_id)
    except User.DoesNotExist:
        raise Http404 from None


def roles_granted(user: User) -> list[tuple[Role, list[str]]]:
    """A user's roles, each with where it comes from: `by hand`, `by the GitHub team`."""
    found: dict[Role, list[str]] = {}
    for grant in sorted(user.role_grants.all(), key=lambda grant: (grant.role, grant.source)):
        found.setdefault(Role(grant.role), []).append(grant.get_source_display())
    return list(found.items())


def organisations() -> QuerySet[Organisation]:
    return Organisation.objects.order_by("name")


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """A user's own API tokens, newest first."""
    return ApiToken.objects.filter(user=user).select_related("user").order_by("-created_at", "-pk")


def own_token_or_404(user: User, public_id: str) -> ApiToken:
    """One of the user's own API tokens. Another's is not found."""
    try:
        return tokens_of(user).get(public_id=uuid.UUID(public_id))
    except (ApiToken.DoesNotExist, ValueError):
        raise Http404 from None


def count_sessions(user: User, *, now: datetime.datetime) -> int:
    """How many browsers the user is signed in with."""
    return UserSession.objects.filter(user=user, expire_date__gt=now).count()
