"""Who has to leave a decision to others: nobody decides about a platform of their own organisation."""

from apps.accounts.models import User
from apps.core.errors import Problem
from apps.platforms.models import Membership, Platform


def recusal_of(user: User, platform: Platform) -> str:
    """Why this user may not decide about a platform, in one sentence; empty where they may. Two people without an
    organisation have none in common. Two queries at most."""
    members = Membership.objects.filter(platform=platform)
    if members.filter(user=user).exists():
        return f"{user.get_username()} speaks for {platform.name}"
    if user.organisation_id and members.filter(user__organisation_id=user.organisation_id).exists():
        return f"{user.get_username()} is of the organisation of {platform.name}: {user.organisation}"
    return ""


def refuse_own(user: User, *platforms: Platform) -> None:
    """Raises Problem `recusal` where the user has to leave one of these to others."""
    for platform in platforms:
        if why := recusal_of(user, platform):
            raise Problem("recusal", f"{why}, so a maintainer of another organisation has to decide.")
