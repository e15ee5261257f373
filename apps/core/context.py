"""What every page's template knows."""

from django.conf import settings
from django.http import HttpRequest


def hub(request: HttpRequest) -> dict[str, object]:
    return {"DEMO": settings.DEMO, "UPSTREAM_REPO": settings.UPSTREAM_REPO, "BASE_URL": settings.BASE_URL}
