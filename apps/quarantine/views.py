"""Pages of quarantines."""

import datetime
import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from apps.audit.selectors import events_about
from apps.core.access import public, requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Open
from apps.core.rendering import render_page
from apps.platforms.models import Platform
from apps.platforms.selectors import platform_or_404
from apps.quarantine import forms as quarantine_forms
from apps.quarantine import rules, selectors, services, verbs
from apps.quarantine.enums import Verb
from apps.quarantine.models import Quarantine
from apps.quarantine.picking import Picking, picking_of
from apps.quarantine.room import room_of
from apps.quarantine.services import OWNER_MAX
from apps.quarantine.strips import strips_of
from apps.quarantine.verbs import OFFERS, offered, perform
from apps.results.history import DEFAULT_VARIANT
from apps.results.report_selectors import report_or_404

PAGE = 25
MEMBERS_SHOWN = 200
FORMS: dict[Verb, type[forms.Form]] = {
    Verb.NAME_PLATFORM: quarantine_forms.NameForm,
    Verb.PUT_IN_FORCE: quarantine_forms.InForceForm,
    Verb.PROPOSE_RELEASE: quarantine_forms.ReleaseForm,
    Verb.RELEASE: quarantine_forms.ReleasedForm,
}


@public
@require_safe
def quarantines(request: HttpRequest) -> HttpResponse:
    """`/quarantines/?platform=&state=&waiting=&owner=&page=`: what is in quarantine, overdue first."""
    moment = now()
    form = quarantine_forms.QuarantineFilterForm(request.GET)
    found = selectors.found(request.user, form.given(), now=moment)
    page = Paginator(found, PAGE).get_page(request.GET.get("page"))
    strips = strips_of(list(page.object_list), request.user)
    rows = [(one, [cell.drawn for cell in strips[one.pk]]) for one in page.object_list]
    context = {
        "form": form,
        "page": page,
        "rows": rows,
        "now": moment,
        "nav": "tests",
        "awaiting": selectors.waiting_counts(request.user),
    }
    return render_page(request, "quarantine/quarantine_list.html", context)


@public  # for those who may not see it, visitors among them, it does not exist
@require_http_methods(["GET", "POST"])
def quarantine(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/quarantines/<id>/`: its tests, evidence and history; POST `act` (a verb of verbs.OFFERS) with its form's
    fields, for who may."""
    found = selectors.quarantine_or_404(public_id, request.user)
    if request.method == "GET":
        return _page(request, found, {})
    act = request.POST.get("act", "")
    if act not in FORMS and act not in OFFERS:
        raise Http404
    verb = Verb(act)
    if not selectors.may_change(request.user, found.platform):
        raise PermissionDenied("Only members of the platform and maintainers may change a quarantine.")
    form = _form_of(verb)(request.POST, prefix=verb.value)
    if form.is_valid():
        said = dict(form.cleaned_data)
        if said.get("expires_at"):
            said["expires_at"] = _end_of(said["expires_at"])
        try:
            revision = said.pop("revision")
            moved = perform(verb, quarantine=found, revision=revision, said=said, user=request.user, now=now())
        except Problem as problem:
            form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
        else:
            messages.success(request, f"{services.label_of(moved)}: {moved.get_state_display().lower()}.")
            return redirect("quarantine:quarantine", public_id=public_id)
    return _page(request, selectors.quarantine_or_404(public_id, request.user), {verb: form})


def _end_of(day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(23, 59, 59), datetime.UTC)


def _form_of(verb: Verb) -> type[forms.Form]:
    if verb in FORMS:
        return FORMS[verb]
    return quarantine_forms.ReasonForm if "reason" in OFFERS[verb].fields else quarantine_forms.VerbForm


def _page(request: HttpRequest, found: Quarantine, bound: dict[Verb, forms.Form]) -> HttpResponse:
    offers = []
    for verb in offered(found, request.user):
        form = bound.get(verb) or _form_of(verb)(prefix=verb.value, initial={"revision": found.revision})
        if verb in bound:  # what was written stays; it is about what is shown now
            form.data = form.data.dict() | {form.add_prefix("revision"): found.revision}  # type: ignore[attr-defined]
        offers.append((verb, OFFERS[verb], form))
    shown = {verb for verb, _, _ in offers}
    cells = strips_of([found], request.user)[found.pk]
    context: dict[str, Any] = {
        "quarantine": found,
        "label": services.label_of(found),
        "members": list(selectors.members_of(found)[:MEMBERS_SHOWN]),
        "cells": cells,
        "strip": [cell.drawn for cell in cells],
        "flakes": selectors.flakes_of(found, request.user),
        "events": events_about("quarantine", str(found.public_id)),
        "offers": offers,
        "refused": [error for verb, form in bound.items() if verb not in shown for error in form.non_field_errors()],
        "now": now(),
        "nav": "tests",
    }
    return render(request, "quarantine/quarantine_detail.html", context)


def _picking(request: HttpRequest, platform: Platform) -> Picking | None:
    """What the report of the address offers; None where it names none. Raises Http404 for one that is not there, or of
    another platform."""
    said = request.GET.get("report", "")
    if not said:
        return None
    try:
        report = report_or_404(uuid.UUID(said), request.user)
    except ValueError:
        raise Http404 from None
    if report.platform != platform:
        raise Http404
    return picking_of(report)


@requires(Open.SIGNED_IN)
@require_http_methods(["GET", "POST"])
def propose(request: HttpRequest, slug: str) -> HttpResponse:
    """`/platforms/<slug>/quarantines/new/?report=&tests=&variant=`: propose tests or a pattern of a platform, for its
    members and maintainers; with `report` (an id) what went wrong there can be picked. Whoever else asks is refused."""
    user: Any = request.user
    platform = platform_or_404(slug)
    if not selectors.may_change(user, platform):
        raise PermissionDenied("Only members of the platform and maintainers may propose a quarantine.")
    picking = _picking(request, platform)
    variant = picking.report.variant if picking else request.GET.get("variant", DEFAULT_VARIANT)
    initial = {"tests": request.GET.get("tests", ""), "variant": variant, "owner": user.get_username()[:OWNER_MAX]}
    form = quarantine_forms.ProposeForm(
        request.POST or None, platform=platform, offered=picking.offered if picking else (), initial=initial
    )
    moment = now()
    if request.method == "POST" and form.is_valid():
        try:
            made = verbs.propose(platform=platform, said=form.values(), user=user, now=moment)
        except Problem as problem:
            form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
        else:
            messages.success(
                request, f"Proposed: {services.label_of(made)}. It has no effect until it is put in force."
            )
            return redirect("quarantine:quarantine", public_id=made.public_id)
    held = rules.in_force(moment)
    context = {
        "platform": platform,
        "form": form,
        "picking": picking,
        "room": room_of(platform, form["variant"].value() or DEFAULT_VARIANT, held, now=moment),
        "rules": held,
    }
    return render(request, "quarantine/quarantine_propose.html", context)
