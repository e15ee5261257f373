"""Who is told about a repository's rising and falling."""

from django.db.models import Q, QuerySet

from apps.accounts.models import User
from apps.accounts.selectors import holders
from apps.core.permissions import Permission
from apps.levels.models import Promotion
from apps.platforms.models import Membership, Platform


def deciders(*, besides: User | None = None) -> QuerySet[User]:
    """Everybody whose role lets them decide about levels."""
    found = holders(Permission.PROMOTION_DECIDE)
    return found.exclude(pk=besides.pk) if besides else found


def readers(promotion: Promotion, *, besides: User | None = None) -> QuerySet[User]:
    """The platform's members, who opened it, and who has approved or objected."""
    found = User.objects.filter(
        Q(memberships__platform=promotion.repository.platform)
        | Q(pk=promotion.opened_by_id)
        | Q(approvals__promotion=promotion)
        | Q(objections__promotion=promotion),
        is_active=True,
    )
    return found.exclude(pk=besides.pk) if besides else found


def readers_of(platform: Platform) -> QuerySet[User]:
    """The platform's members, and who decides about levels."""
    members = Membership.objects.filter(platform=platform).values("user")
    return User.objects.filter(Q(pk__in=members) | Q(pk__in=deciders().values("pk")), is_active=True)
