"""Who may not decide about which platform: the one question, for overrides and breakers."""

from collections.abc import Iterable

from apps.accounts.models import User
from apps.core.errors import Problem
from apps.platforms.models import Membership, Repository


def refuse_own(user: User, repositories: Iterable[Repository]) -> None:
    """Raises Problem `recusal` where a user speaks for one of these repositories' platforms, or somebody of their
    organisation does."""
    platforms = {repository.platform_id: repository for repository in repositories}
    of_these = Membership.objects.filter(platform__in=platforms).select_related("platform", "user")
    for membership in of_these.order_by("platform__name", "pk"):
        is_colleague = user.organisation_id is not None and membership.user.organisation_id == user.organisation_id
        if membership.user_id == user.pk or is_colleague:
            whose = "you speak for it" if membership.user_id == user.pk else "your organisation speaks for it"
            raise Problem("recusal", f"{membership.platform.name}: {whose}, so another maintainer has to decide.")
