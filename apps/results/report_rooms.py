"""Pages of one report beside its receipt: what went wrong, what was not run."""

import uuid
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.core.access import public
from apps.core.clock import now
from apps.core.permissions import Permission
from apps.core.rendering import render_page
from apps.platforms.selectors import may_on_platform
from apps.results.elsewhere import others_of, seen_elsewhere
from apps.results.forms import FindingForm, SkipForm
from apps.results.models import Report, Test
from apps.results.report_selectors import findings_found, is_read, report_or_404
from apps.results.skip_ledger import ledger_of, skipped_of

FINDINGS_PAGE = 25
LINES_PAGE = 50


@public
@require_safe
def findings(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/reports/<id>/findings/?outcome=&quarantined=&page=`: the tests that did not simply pass,
    what was said, whether the same is found on other platforms at the commit, or on the base, and what is listed
    apart."""
    report = report_or_404(public_id, request.user)
    context: dict[str, Any] = {"report": report, "tab": "findings", "now": now()}
    if is_read(report):
        form = FindingForm(request.GET)
        page = Paginator(findings_found(report, **form.chosen()), FINDINGS_PAGE).get_page(request.GET.get("page"))
        others = others_of(report, request.user)
        page.object_list = seen_elsewhere(list(page.object_list), report, others)  # type: ignore[assignment]
        may_quarantine = may_on_platform(request.user, Permission.QUARANTINE_CHANGE, report.platform)
        context |= {"form": form, "page": page, "others": others, "may_quarantine": may_quarantine}
    return render_page(request, "results/report_findings.html", context)


@public
@require_safe
def skips(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/reports/<id>/skips/?class=&reason=&page=`: what was not run, by class and reason, and how far that is borne
    out; with `reason` the tests of that one."""
    report = report_or_404(public_id, request.user)
    context: dict[str, Any] = {"report": report, "tab": "skips", "now": now()}
    if is_read(report):
        context |= _skips(request, report)
    return render_page(request, "results/report_skips.html", context)


@public
@require_safe
def missing(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/reports/<id>/missing/?page=`: the names of coverage's whole that the report did not run and did not skip."""
    report = report_or_404(public_id, request.user)
    context: dict[str, Any] = {"report": report, "tab": "missing", "now": now()}
    if is_read(report) and hasattr(report, "coverage"):
        from apps.results.coverage import unrun_of  # pyarrow: for the memory of those processes that are asked

        found = unrun_of(report.coverage, request.user)
        page = Paginator(range(len(found.test)), LINES_PAGE).get_page(request.GET.get("page"))
        places = page.object_list
        page.object_list = found.rows(places.start, places.stop)  # type: ignore[attr-defined, assignment]
        context["page"] = page
    return render_page(request, "results/report_missing.html", context)


def _skips(request: HttpRequest, report: Report) -> dict[str, Any]:
    form = SkipForm(request.GET)
    ledger, given = ledger_of(report), form.given()
    chosen = next((line for line in ledger.lines if line.reason.pk == given.get("reason")), None)
    lines = [line for line in ledger.lines if given.get("class", line.skip_class) == line.skip_class]
    rows: Any = lines
    if chosen is not None:
        skipped = skipped_of(report)
        rows = skipped.test[skipped.reason == chosen.reason.pk]
    page = Paginator(rows, LINES_PAGE).get_page(request.GET.get("page"))
    if chosen is not None:
        numbers = [int(number) for number in page.object_list]
        tests = Test.objects.in_bulk(numbers)
        page.object_list = [tests[number] for number in numbers]
    return {"form": form, "ledger": ledger, "chosen": chosen, "page": page}
