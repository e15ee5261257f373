"""The API of comparisons."""

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.cursors import numbered
from apps.core.permissions import Open
from apps.results.compare import Row, compared, rows_of
from apps.results.compare_views import read_change, read_pair
from apps.results.models import Exclusion, Report, Test


def test_out(test: Test) -> dict[str, Any]:
    """A test as every answer names it: by its number in the catalogue, and its canonical name."""
    return {"id": test.pk, "file": test.file, "class_name": test.class_name, "name": test.name}


test_out.__test__ = False  # type: ignore[attr-defined]


def exclusion_out(exclusion: Exclusion | None) -> dict[str, Any] | None:
    """By what a red test is listed apart, and until when; None where it is not."""
    return None if exclusion is None else {"url": settings.BASE_URL + exclusion.url, "until": exclusion.until_at}


def _report_out(report: Report) -> dict[str, Any]:
    return {
        "id": str(report.public_id),
        "platform": report.platform.slug,
        "origin": report.origin_name,
        "head_sha": report.head_sha,
        "run_id": report.run_id,
        "received_at": report.received_at,
        "flags": report.flags,
    }


def _row_out(row: Row) -> dict[str, Any]:
    said = {"change": row.change.value, "before": row.before, "after": row.after, "message": row.message}
    return {"test": test_out(row.test), **said, "quarantined": exclusion_out(row.exclusion)}


class CompareView(APIView):
    """`GET /api/v1/compare/?base=&head=&change=&cursor=&limit=`: what changed from the report `base` to `head`, both of
    one variant. `base` is an id, `previous`, `base` (the base commit's) or the slug of a platform at the same commit.

    200 `{base, head, variant, tests, counts {change: tests}, cells [{before, after, change, tests}], next, previous,
    results [{test {id, file, class_name, name}, change, before, after, message, quarantined
    {url, until} or null}]}`; without `change` the rows are all
    but those that are as they were. 400 `malformed`; 404; 409 `variants_differ`, `report_unready`, `report_removed`.
    """

    access = Open.PUBLIC

    def get(self, request: Request) -> Response:
        change = read_change(request.query_params.get("change", ""))
        base, head = read_pair(request.query_params, request.user).values()
        found = compared(base, head)
        places = found.rows(change)
        about = {
            "base": _report_out(base),
            "head": _report_out(head),
            "variant": head.variant,
            "tests": len(found.test),
            "counts": found.counts,
            "cells": [
                {"before": before, "after": after, "change": each.value, "tests": tests}
                for before, after, each, tests in found.cells
            ],
        }
        listed = numbered(
            request,
            len(places),
            lambda start, end: [_row_out(row) for row in rows_of(found, places[start:end], head)],
        )
        return Response(about | listed)
