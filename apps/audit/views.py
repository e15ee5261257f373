"""The decision log's pages."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.audit import selectors
from apps.core.access import public
from apps.core.clock import now

PAGE = 50


@public
def decisions(request: HttpRequest) -> HttpResponse:
    """`/decisions/`: every public decision, newest first, `?page=` from 1 on."""
    page = Paginator(selectors.decisions(), PAGE).get_page(request.GET.get("page"))
    rows = [(event, selectors.body_of(event)) for event in page.object_list]
    context = {"page": page, "rows": rows, "verification": selectors.last_verification(), "now": now()}
    return render(request, "audit/decision_list.html", context)


@public
def decision(request: HttpRequest, seq: int) -> HttpResponse:
    """`/decisions/<seq>/`: one decision, whole, with its place in the chain."""
    event = selectors.decision_or_404(seq)
    context = {
        "event": event,
        "body": selectors.body_of(event),
        "changes": selectors.changes_of(event),
        "verification": selectors.last_verification(),
        "now": now(),
    }
    return render(request, "audit/decision_detail.html", context)
