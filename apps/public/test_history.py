"""One test: its runs across platforms, and what is known of its flakiness."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.core.access import public
from apps.core.clock import now
from apps.core.rendering import render_page
from apps.quarantine.of_test import of_test
from apps.results.history import details_of, history_of

RUNS_PAGE = 25
_INT64 = 2**63


@public
@require_safe
def test(request: HttpRequest, number: int) -> HttpResponse:
    """`/tests/<number>/?variant=&page=`: one test in the newest reports of one variant: a strip for each platform, its
    flakes, quarantines and red streaks, and the runs with what was said."""
    found = history_of(min(number, _INT64 - 1), request.user, variant=request.GET.get("variant", ""))
    page = Paginator(found.runs, RUNS_PAGE).get_page(request.GET.get("page"))
    page.object_list = details_of(found.test, list(page.object_list))  # type: ignore[assignment]
    strips = [
        (name, [(f"{run.report.received_at:%Y-%m-%d %H:%M} UTC", run.tone, run.word) for run in runs])
        for name, runs in found.strips
    ]
    context = {
        "history": found,
        "strips": strips,
        "flaky": of_test(found.test, found.variant, request.user),
        "page": page,
        "now": now(),
    }
    return render_page(request, "public/test.html", context)


test.__test__ = False  # type: ignore[attr-defined]
