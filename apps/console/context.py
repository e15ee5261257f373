"""What the header shows to whom."""

from django.http import HttpRequest
from django.urls import reverse

from apps.console.operations import rooms_of
from apps.core.permissions import Permission
from apps.governance.selectors import proposals_of
from apps.platforms import authority
from apps.platforms.selectors import member_platforms

ANYTHING_THERE = (Permission.PROPOSAL_DECIDE, Permission.TRANSFER_DECIDE, Permission.REJECTION_VIEW)


def navigation(request: HttpRequest) -> dict[str, object]:
    """`console_url` for those who have something there: who decides, who runs the hub, who looks after upstream's file,
    who proposed, who speaks for a platform; `operations_url` for who may enter a room of the staff, with the addresses
    of those rooms."""
    user = getattr(request, "user", None)
    if user is None or user.is_anonymous:
        return {}
    seen: dict[str, object] = {}
    if rooms := rooms_of(user):
        seen["operations_url"] = reverse("console:operations")
        seen["operations_paths"] = [room.path for room in rooms if room.url_name != "console:console"]
    looks_after_file = authority.is_file() and user.may(Permission.ALLOWLIST_VIEW)
    if any(map(user.may, ANYTHING_THERE)) or looks_after_file or _is_vendor(user):
        seen["console_url"] = reverse("console:console")
    return seen


def _is_vendor(user: object) -> bool:
    """One query: every page asks it."""
    own = member_platforms(user).order_by().values("pk")
    return proposals_of(user).order_by().values("pk").union(own, all=True).exists()
