"""Pages of the gate: the ledger of overrides."""

import uuid
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from apps.audit.selectors import events_about
from apps.core.access import is_allowed, public, requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.core.rendering import render_page
from apps.gate import overriding, selectors
from apps.gate.forms import OverrideFilterForm, OverrideForm, ReasonForm
from apps.policies.selectors import policy_at

PAGE = 50


@public
@require_safe
def overrides(request: HttpRequest) -> HttpResponse:
    """`/overrides/?pr=&repository=&page=`: every override that was granted, the newest first."""
    form = OverrideFilterForm(request.GET)
    page = Paginator(selectors.overrides_found(form.given()), PAGE).get_page(request.GET.get("page"))
    context = {
        "form": form,
        "page": page,
        "may_grant": is_allowed(request.user, Permission.OVERRIDE_GRANT),
        "now": now(),
    }
    return render_page(request, "gate/override_list.html", context)


@requires(Permission.OVERRIDE_GRANT)
@require_http_methods(["GET", "POST"])
def grant(request: HttpRequest) -> HttpResponse:
    """`/overrides/new/?pr=`: let a part of a pull request pass, for maintainers of another organisation."""
    moment, user = now(), request.user
    form = OverrideForm(request.POST or None, initial={"pr": request.GET.get("pr", "")})
    if request.method == "POST" and form.is_valid():
        said = form.cleaned_data
        assert user.is_authenticated, "the route asks for a permission"
        try:
            made = overriding.grant_override(
                pr_number=said["pr"],
                sha=said["sha"],
                repository=said["repository"],
                reason=said["reason"],
                until=form.until(moment),
                by=user,
                now=moment,
            )
        except Problem as problem:
            form.add_error({"until": "hours"}.get(problem.field or "", problem.field), problem.detail)
        else:
            messages.success(request, f"Overridden: {made}. It stands in the log.")
            return redirect("public:pull_request", number=made.pr_number)
    limits = policy_at(moment).limits
    return render(request, "gate/override_form.html", {"form": form, "hours_max": limits["override_hours_max"]})


@public
@require_http_methods(["GET", "POST"])
def override(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/overrides/<id>/`: one override and its log; POST withdraws it, for maintainers."""
    found = selectors.override_or_404(public_id)
    moment, user = now(), request.user
    may = is_allowed(user, Permission.OVERRIDE_GRANT)
    form = ReasonForm(request.POST or None)
    if request.method == "POST":
        if not may:
            raise PermissionDenied("Only maintainers may withdraw an override.")
        assert user.is_authenticated, "no visitor may"
        if form.is_valid():
            try:
                overriding.withdraw_override(override=found, reason=form.cleaned_data["reason"], by=user, now=moment)
            except Problem as problem:
                form.add_error(None, problem.detail)
            else:
                messages.success(request, "Withdrawn: the gate counts the part again.")
                return redirect("gate:override", public_id=public_id)
    holds = found.withdrawn_at is None and found.until > moment
    context: dict[str, Any] = {
        "override": found,
        "events": events_about("override", str(found.public_id)),
        "form": form if may and (holds or form.errors) else None,
        "now": moment,
    }
    return render(request, "gate/override_detail.html", context)
