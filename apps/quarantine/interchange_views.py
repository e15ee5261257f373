"""A platform's quarantines as other runners read them."""

import json

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.core.access import public
from apps.core.clock import now
from apps.platforms.selectors import platform_or_404
from apps.quarantine import interchange, selectors, services

VARIANT = "default"


def _disabled(request: HttpRequest, slug: str) -> list[interchange.Disabled]:
    """Raises Http404 where the platform's quarantines are not this user's to see: an empty list would be a lie."""
    platform = platform_or_404(slug)
    if not (services.is_public(platform) or selectors.may_change(request.user, platform)):
        raise Http404
    return interchange.disabled(platform, request.GET.get("variant", VARIANT), request.user, now=now())


@public  # as the platform's quarantines are
@require_safe
def disabled_tests(request: HttpRequest, slug: str) -> HttpResponse:
    """`/platforms/<slug>/disabled-tests.json?variant=`: what is in force, in the form of upstream's disabled tests."""
    said = interchange.disabled_tests(_disabled(request, slug), settings.BASE_URL)
    return HttpResponse(json.dumps(said, indent=2, ensure_ascii=False), content_type="application/json; charset=utf-8")


@public  # as the platform's quarantines are
@require_safe
def deselect(request: HttpRequest, slug: str) -> HttpResponse:
    """`/platforms/<slug>/deselect.txt?variant=`: what is in force, as options for `pytest @deselect.txt`."""
    text = interchange.deselected(_disabled(request, slug))
    return HttpResponse(text, content_type="text/plain; charset=utf-8")
