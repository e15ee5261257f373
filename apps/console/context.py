"""What the header shows to whom."""

from django.http import HttpRequest
from django.urls import reverse

from apps.core.permissions import Permission
from apps.governance.selectors import proposals_of
from apps.platforms import authority

ANYTHING_THERE = (Permission.PROPOSAL_DECIDE, Permission.TRANSFER_DECIDE, Permission.REJECTION_VIEW)


def navigation(request: HttpRequest) -> dict[str, object]:
    """`console_url` for those who have something there: who decides, who runs the hub, who looks after upstream's file,
    and who proposed."""
    user = getattr(request, "user", None)
    if user is None or user.is_anonymous:
        return {}
    looks_after_file = authority.is_file() and user.may(Permission.ALLOWLIST_VIEW)
    if any(map(user.may, ANYTHING_THERE)) or looks_after_file or proposals_of(user).exists():
        return {"console_url": reverse("console:console")}
    return {}
