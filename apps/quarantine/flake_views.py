"""The page of flaky tests by what they cost."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.core.access import public
from apps.core.clock import now
from apps.core.rendering import render_page
from apps.quarantine import costs

PAGE = 50


@public
@require_safe
def flakes(request: HttpRequest) -> HttpResponse:
    """`/flakes/?page=`: what was flaky in the last days, the most costly first."""
    moment = now()
    page = Paginator(costs.costs(request.user, now=moment), PAGE).get_page(request.GET.get("page"))
    costs.named(page)
    return render_page(
        request, "quarantine/flake_list.html", {"page": page, "now": moment, "days": costs.DAYS, "nav": "tests"}
    )
