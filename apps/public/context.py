"""What the header shows to whom."""

from django.http import HttpRequest
from django.urls import reverse

from apps.relay.selectors import sees_rejections


def navigation(request: HttpRequest) -> dict[str, object]:
    """`rejections_url` for those who may see refused callbacks."""
    user = getattr(request, "user", None)
    return {"rejections_url": reverse("public:rejections")} if user is not None and sees_rejections(user) else {}
