"""What the header shows to whom."""

from django.http import HttpRequest
from django.urls import reverse

from apps.core.permissions import Permission
from apps.governance.selectors import proposals_of
from apps.platforms import authority


def navigation(request: HttpRequest) -> dict[str, object]:
    """`console_url` for those who have something there: who decides, who looks after upstream's file, who proposed."""
    user = getattr(request, "user", None)
    if user is None or user.is_anonymous:
        return {}
    looks_after_file = authority.is_file() and user.may(Permission.ALLOWLIST_VIEW)
    if user.may(Permission.PROPOSAL_DECIDE) or looks_after_file or proposals_of(user).exists():
        return {"console_url": reverse("console:console")}
    return {}
