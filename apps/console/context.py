"""What the header shows to whom."""

from django.http import HttpRequest
from django.urls import reverse

from apps.core.permissions import Permission
from apps.governance.selectors import proposals_of


def navigation(request: HttpRequest) -> dict[str, object]:
    """`console_url` for those who have something there: who decides, and who proposed; `relay_url` for operators."""
    user = getattr(request, "user", None)
    if user is None or user.is_anonymous:
        return {}
    seen: dict[str, object] = {"relay_url": reverse("console:relay")} if user.may(Permission.RELAY_VIEW) else {}
    if user.may(Permission.PROPOSAL_DECIDE) or proposals_of(user).exists():
        seen["console_url"] = reverse("console:console")
    return seen
