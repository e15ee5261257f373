"""The API of what one report found, and of what it did not run."""

import uuid
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.clock import now
from apps.core.cursors import numbered, read_filters
from apps.core.errors import Problem
from apps.core.permissions import Open
from apps.results.backlog import BACKLOG_DAYS, Left, backlog
from apps.results.compare_api import exclusion_out, test_out
from apps.results.elsewhere import Seen, others_of, seen_elsewhere
from apps.results.forms import FindingForm, SkipForm
from apps.results.models import Report
from apps.results.report_selectors import findings_found, is_read, report_or_404
from apps.results.skip_ledger import Ledger, Line, ledger_of


def read_report(request: Request, public_id: uuid.UUID) -> Report:
    """The report, if its tests can be shown. Raises Problem `report_removed`, `report_unready`; Http404."""
    report = report_or_404(public_id, request.user)
    if hasattr(report, "removal"):
        raise Problem("report_removed", "This report was taken down: nothing is left of its tests.")
    if not is_read(report):
        raise Problem("report_unready", f"This report is {report.get_state_display()}, not ready.")
    return report


def _seen_out(seen: Seen) -> dict[str, Any]:
    finding = seen.finding
    return {
        "test": test_out(finding.test),
        "outcome": finding.outcome,
        "message": finding.message,
        "trace": finding.trace,
        "fingerprint": seen.failure,
        "attempts": finding.attempts,
        "verdict": seen.verdict.value,
        "quarantined": exclusion_out(seen.exclusion),
        "elsewhere": [
            {
                "report": str(sighting.report.public_id),
                "platform": sighting.report.platform.slug,
                "head_sha": sighting.report.head_sha,
                "where": "base" if sighting.is_base else "commit",
                "outcome": sighting.outcome or None,
                "same_failure": sighting.same_failure,
            }
            for sighting in seen.sightings
        ],
    }


class FindingsView(APIView):
    """`GET /api/v1/reports/<id>/findings/?outcome=&quarantined=&cursor=&limit=`: the tests that did not simply pass.

    200 `{looked_at {commit, base, base_is}, next, previous, results [{test, outcome, message, trace, fingerprint,
    attempts, verdict, quarantined {url, until} or null, elsewhere [{report, platform, head_sha, where, outcome,
    same_failure}]}]}`: `looked_at` counts the reports that were looked through. 400 `malformed`; 404; 409
    `report_unready`, `report_removed`.
    """

    access = Open.PUBLIC

    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        report = read_report(request, public_id)
        form = FindingForm(request.query_params)
        read_filters(form)
        found, others = findings_found(report, **form.chosen()), others_of(report, request.user)

        def rows(start: int, end: int) -> list[dict[str, Any]]:
            return [_seen_out(seen) for seen in seen_elsewhere(list(found[start:end]), report, others)]

        looked_at = {"commit": len(others.at_commit), "base": len(others.at_base), "base_is": others.base_words}
        return Response({"looked_at": looked_at} | numbered(request, found.count(), rows))


def _line_out(line: Line) -> dict[str, Any]:
    disabled = line.disabled_by
    return {
        "class": line.skip_class.value,
        "reason": line.reason.text,
        "tests": line.tests,
        "corroborated": line.corroborated,
        "trust": line.trust.value,
        "issue": disabled.issue if disabled else None,
        "platforms": list(disabled.platforms) if disabled else [],
    }


class SkipsView(APIView):
    """`GET /api/v1/reports/<id>/skips/?class=&cursor=&limit=`: what was not run, a row a reason, most tests first.

    200 `{tests, classes [{class, tests, corroborated}], witnesses [{report, platform}], next, previous, results
    [{class, reason, tests, corroborated, trust, issue, platforms}]}`: `corroborated` counts the tests that a witness
    ran, null where nobody else's result could say so. 400 `malformed`; 404; 409 `report_unready`, `report_removed`.
    """

    access = Open.PUBLIC

    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        report = read_report(request, public_id)
        form = SkipForm(request.query_params)
        read_filters(form)
        wanted, ledger = form.given().get("class"), ledger_of(report)
        lines = [line for line in ledger.lines if wanted in (None, line.skip_class)]
        listed = numbered(request, len(lines), lambda start, end: [_line_out(line) for line in lines[start:end]])
        return Response(_ledger_out(ledger) | listed)


class CoverageView(APIView):
    """`GET /api/v1/reports/<id>/coverage/`: how much of what could be run the report ran.

    200 `{basis, reference, names, executed, skipped, missing, classes {class: tests}, counted_at}`: executed,
    skipped and missing sum to `names`; all null but `classes` while it is not counted. 404; 409
    `report_unready`, `report_removed`.
    """

    access = Open.PUBLIC

    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        coverage = getattr(read_report(request, public_id), "coverage", None)
        fields = ("basis", "names", "executed", "skipped", "missing", "counted_at")
        reference = coverage.reference if coverage else None
        return Response(
            {name: getattr(coverage, name, None) for name in fields}
            | {"reference": str(reference.public_id) if reference else None}
            | {"classes": coverage.classes if coverage else {}}
        )


class MissingView(APIView):
    """`GET /api/v1/reports/<id>/missing/?cursor=&limit=`: the names that the report did not run and did not skip.

    200 `{basis, reference, missing, next, previous, results [{test, how}]}`: `how` is `not there`, `lost` or `unknown`;
    `missing` counts what coverage counted, the rows are those of them that the reader may know of. 404; 409
    `report_unready` (also while coverage is not counted), `report_removed`.
    """

    access = Open.PUBLIC

    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        from apps.results.coverage import unrun_of  # pyarrow: for the memory of those processes that are asked

        report = read_report(request, public_id)
        coverage = getattr(report, "coverage", None)
        if coverage is None:
            raise Problem("report_unready", "The coverage of this report is not counted yet.")
        found = unrun_of(coverage, request.user)

        def rows(start: int, end: int) -> list[dict[str, Any]]:
            return [{"test": test_out(test), "how": how} for test, how in found.rows(start, end)]

        about = {
            "basis": coverage.basis,
            "reference": str(coverage.reference.public_id) if coverage.reference else None,
            "missing": coverage.missing,
        }
        return Response(about | numbered(request, len(found.test), rows))


class BacklogView(APIView):
    """`GET /api/v1/backlog/?cursor=&limit=`: what is left to do of each platform and variant, by its newest public
    report of the last 30 days, most first.

    200 `{days, next, previous, results [{platform, origin, variant, report, received_at, failures, known_failures,
    unexplained, names, executed, skipped, missing}]}`: null where it is not counted yet.
    """

    access = Open.PUBLIC

    def get(self, request: Request) -> Response:
        left = backlog(now())
        listed = numbered(request, len(left), lambda start, end: [_left_out(one) for one in left[start:end]])
        return Response({"days": BACKLOG_DAYS} | listed)


def _left_out(left: Left) -> dict[str, Any]:
    report = left.report
    return {
        "platform": report.platform.slug,
        "origin": report.origin_name,
        "variant": report.variant,
        "report": str(report.public_id),
        "received_at": report.received_at,
        "failures": left.failures,
        "known_failures": left.known,
        "unexplained": left.unexplained,
    } | {name: getattr(left.coverage, name, None) for name in ("names", "executed", "skipped", "missing")}


def _ledger_out(ledger: Ledger) -> dict[str, Any]:
    return {
        "tests": ledger.tests,
        "classes": [
            {"class": one.skip_class.value, "tests": one.tests, "corroborated": one.corroborated}
            for one in ledger.classes
        ],
        "witnesses": [
            {"report": str(witness.public_id), "platform": witness.platform.slug} for witness in ledger.witnesses
        ],
    }
