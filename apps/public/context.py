"""What the header shows to whom."""

from django.http import HttpRequest
from django.urls import reverse

from apps.core.permissions import Permission
from apps.relay.selectors import sees_rejections


def navigation(request: HttpRequest) -> dict[str, object]:
    """`search_url` for the header's search; `rejections_url` for those who may see refused callbacks, `dispatches_url`
    for those who may see the outbox."""
    user = getattr(request, "user", None)
    seen: dict[str, object] = {"search_url": reverse("public:platforms")}
    if user is not None and sees_rejections(user):
        seen["rejections_url"] = reverse("public:rejections")
    if user is not None and user.is_authenticated and user.may(Permission.DISPATCH_VIEW):
        seen["dispatches_url"] = reverse("relay_pages:dispatches")
    return seen
