"""The decision log's pages."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.audit import selectors
from apps.audit.forms import DecisionForm
from apps.audit.notes import notes_of
from apps.core.access import public
from apps.core.clock import now
from apps.core.rendering import render_page

PAGE = 50


@public
def decisions(request: HttpRequest) -> HttpResponse:
    """`/decisions/`: public decisions, newest first: `?about=&action=&actor=&since=&until=&page=`."""
    form = DecisionForm(request.GET)
    page = Paginator(selectors.decisions_found(form.filters()), PAGE).get_page(request.GET.get("page"))
    rows = [(event, selectors.body_of(event)) for event in page.object_list]
    verification = selectors.last_verification()
    context = {"form": form, "page": page, "rows": rows, "verification": verification, "now": now()}
    return render_page(request, "audit/decision_list.html", context)


@public
def decision(request: HttpRequest, seq: int) -> HttpResponse:
    """`/decisions/<seq>/`: one decision, whole, with its place in the chain."""
    event = selectors.decision_or_404(seq)
    context = {
        "event": event,
        "body": selectors.body_of(event),
        "changes": selectors.changes_of(event),
        "notes": notes_of(event),
        "verification": selectors.last_verification(),
        "now": now(),
    }
    return render(request, "audit/decision_detail.html", context)
