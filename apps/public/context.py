"""What the header shows to whom."""

from django.http import HttpRequest
from django.urls import reverse

from apps.core.permissions import Permission
from apps.relay.selectors import sees_rejections


def navigation(request: HttpRequest) -> dict[str, object]:
    """`search_url` for the header's search; `rejections_url` for members, who see their platforms' refused callbacks:
    the staff finds all of them among its rooms."""
    user = getattr(request, "user", None)
    seen: dict[str, object] = {"search_url": reverse("public:platforms")}
    if user is not None and sees_rejections(user) and not user.may(Permission.REJECTION_VIEW):
        seen["rejections_url"] = reverse("public:rejections")
    return seen
