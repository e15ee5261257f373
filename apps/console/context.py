"""What the header shows to whom."""

from django.http import HttpRequest
from django.urls import reverse

from apps.core.permissions import Permission
from apps.governance.selectors import proposals_of
from apps.platforms import authority
from apps.platforms.selectors import member_platforms

ANYTHING_THERE = (Permission.PROPOSAL_DECIDE, Permission.TRANSFER_DECIDE, Permission.REJECTION_VIEW)


def navigation(request: HttpRequest) -> dict[str, object]:
    """`console_url` for those who have something there: who decides, who runs the hub, who looks after upstream's file,
    who proposed, who speaks for a platform; `people_url` for who gives roles; `relay_url` for operators."""
    user = getattr(request, "user", None)
    if user is None or user.is_anonymous:
        return {}
    seen: dict[str, object] = {}
    if user.may(Permission.USER_CHANGE):
        seen["people_url"] = reverse("console:people")
    if user.may(Permission.RELAY_VIEW):
        seen["relay_url"] = reverse("console:relay")
    looks_after_file = authority.is_file() and user.may(Permission.ALLOWLIST_VIEW)
    if any(map(user.may, ANYTHING_THERE)) or looks_after_file or _is_vendor(user):
        seen["console_url"] = reverse("console:console")
    return seen


def _is_vendor(user: object) -> bool:
    """One query: every page asks it."""
    own = member_platforms(user).order_by().values("pk")
    return proposals_of(user).order_by().values("pk").union(own, all=True).exists()
