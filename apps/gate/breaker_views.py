"""Pages of the breaker."""

import uuid

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from apps.audit.selectors import events_about
from apps.core.access import is_allowed, public
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.core.rendering import render_page
from apps.gate import breaking, selectors
from apps.gate.forms import ReasonForm
from apps.policies.selectors import policy_at

PAGE = 50


@public
@require_safe
def breakers(request: HttpRequest) -> HttpResponse:
    """`/breakers/?page=`: which blocking repositories lost their say, and when they had it back; open ones first."""
    page = Paginator(selectors.all_trips(), PAGE).get_page(request.GET.get("page"))
    return render_page(request, "gate/breaker_list.html", {"page": page, "now": now()})


@public
@require_http_methods(["GET", "POST"])
def breaker(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/breakers/<id>/`: why a breaker opened, on which rows; POST closes it, for maintainers."""
    found = selectors.trip_or_404(public_id)
    moment, user = now(), request.user
    may = is_allowed(user, Permission.BREAKER_CLOSE)
    form = ReasonForm(request.POST or None)
    if request.method == "POST":
        if not may:
            raise PermissionDenied("Only maintainers may close a breaker.")
        assert user.is_authenticated, "no visitor may"
        if form.is_valid():
            try:
                breaking.close_breaker(trip=found, reason=form.cleaned_data["reason"], by=user, now=moment)
            except Problem as problem:
                form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
            else:
                messages.success(request, f"Closed: {found.repository} blocks again.")
                return redirect("gate:breaker", public_id=public_id)
    policy = policy_at(moment)
    context = {
        "trip": found,
        "close_runs": policy.limits["breaker_close_runs"],
        "repeat_days": policy.limits["breaker_repeat_days"],
        "is_repeated": breaking.is_repeated(found, policy),
        "events": events_about("breakertrip", str(found.public_id)),
        "form": form if may and (found.closed_at is None or form.errors) else None,
        "now": moment,
    }
    return render(request, "gate/breaker_detail.html", context)
