"""Who is told of falling."""

from django.db.models import Q, QuerySet

from apps.accounts.models import User
from apps.accounts.selectors import holders
from apps.core.permissions import Permission
from apps.platforms.models import Membership, Platform


def readers_of(platform: Platform) -> QuerySet[User]:
    """The platform's members, and who decides about levels."""
    members = Membership.objects.filter(platform=platform).values("user")
    return User.objects.filter(Q(pk__in=members) | Q(pk__in=deciders().values("pk")), is_active=True)


def deciders() -> QuerySet[User]:
    """Who decides about levels."""
    return holders(Permission.LEVEL_CHANGE)
