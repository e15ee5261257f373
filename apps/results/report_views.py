"""Pages of one report: its receipt, what was uploaded, taking it down."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.core.files.storage import default_storage
from django.core.paginator import Paginator
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from apps.accounts.services import actor_of
from apps.core.access import public, requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Open, Permission
from apps.core.rendering import live, render_page
from apps.platforms.services import REASON_MAX
from apps.results.bases import bases_of
from apps.results.models import Report
from apps.results.models_reports import OUTCOME_COUNTS
from apps.results.removal import remove_report
from apps.results.report_selectors import (
    MISSING_SHOWN,
    is_read,
    may_see_raw,
    missing_of,
    part_or_404,
    quarantined_of,
    removable_or_404,
    report_or_404,
    uploads_of,
    version_of,
)

FILES_PAGE = 100


def _version(request: HttpRequest, public_id: uuid.UUID) -> object:
    return version_of(public_id, request.user)


@public
@require_safe
@live(_version)
def report(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/reports/<id>/`: the receipt: state, counts, flags, shards, files (`?page=`); what was uploaded for who may see
    it. Asks again by itself while it is parsed."""
    found = report_or_404(public_id, request.user)
    uploads = list(uploads_of(found))
    missing = [] if hasattr(found, "removal") else missing_of(found.shards, [upload.shard for upload in uploads])
    context = {
        "report": found,
        "counts": [(name, getattr(found, name)) for name in OUTCOME_COUNTS] if found.total is not None else [],
        "quarantined": len(quarantined_of(found)) if is_read(found) else 0,
        "uploads": uploads,
        "missing": missing[:MISSING_SHOWN],
        "missing_count": len(missing),
        "page": Paginator(found.files.order_by("position"), FILES_PAGE).get_page(request.GET.get("page")),
        "bases": bases_of(found, request.user),
        "is_raw_visible": may_see_raw(request.user, found),
        "may_remove": _may_remove(request.user, found),
        "now": now(),
    }
    return render_page(request, "results/report.html", context)


def _may_remove(user: Any, report: Report) -> bool:
    return user.is_authenticated and user.may(Permission.REPORT_REMOVE) and not hasattr(report, "removal")


@requires(Open.SIGNED_IN)
@never_cache
@require_safe
def raw(request: HttpRequest, public_id: uuid.UUID, sha256: str) -> HttpResponse:
    """`/reports/<id>/raw/<sha256>/`: one uploaded file as it came, to be saved: never shown, whatever it is."""
    part = part_or_404(public_id, sha256, request.user)
    return FileResponse(  # type: ignore[return-value]
        default_storage.open(part.storage_name),
        as_attachment=True,
        filename=part.name,
        content_type="application/octet-stream",
    )


class ReasonForm(forms.Form):
    """Why a report is taken down."""

    reason = forms.CharField(
        max_length=REASON_MAX,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Stands on the report's page and in the public log, for good.",
    )


@requires(Permission.REPORT_REMOVE)
@never_cache
@require_http_methods(["GET", "POST"])
def remove(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/reports/<id>/remove/`: what taking the report down removes, and the form that does it (`reason`)."""
    found = removable_or_404(public_id)
    form = ReasonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            event = remove_report(report=found, actor=actor_of(request.user), now=now(), **form.cleaned_data)
        except Problem as problem:
            form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
        else:
            messages.success(request, f"Decision #{event.seq}: the report is taken down.")
            return redirect("reports:report", public_id=public_id)
    context = {"report": found, "uploads": list(uploads_of(found)), "form": form, "now": now()}
    return render(request, "results/report_remove.html", context)
