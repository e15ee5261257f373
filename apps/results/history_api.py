"""The API of tests: search by name, and one test's history."""

from typing import Any

from django.conf import settings
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.cursors import numbered, read_filters
from apps.core.permissions import Open
from apps.results.compare_api import test_out
from apps.results.forms import TestSearchForm
from apps.results.history import Detail, details_of, history_of, tests_found
from apps.results.models import Test

_INT64 = 2**63


def _found_out(test: Test) -> dict[str, Any]:
    return test_out(test) | {"url": settings.BASE_URL + reverse("public:test", args=[test.pk])}


class TestSearch(APIView):
    """`GET /api/v1/tests/?q=`: tests whose file, class and name hold every word of `q`, each of at least three
    characters: the first 50, of those that public reports name.

    200 `{next, previous, results [{id, file, class_name, name, url}]}`; 400 `malformed`.
    """

    __test__ = False
    access = Open.PUBLIC

    def get(self, request: Request) -> Response:
        form = TestSearchForm(request.query_params)
        read_filters(form)
        found = tests_found(form.words(), request.user)
        return Response({"next": None, "previous": None, "results": [_found_out(test) for test in found]})


class TestHistory(APIView):
    """`GET /api/v1/tests/<id>/?variant=&platform=&cursor=&limit=`: one test in the newest 200 reports of a variant:
    those that name it, newest first.

    200 `{test, variant, variants, looked_at, next, previous, results [{report, platform, origin, head_sha, received_at,
    outcome, attempts, ms, message}]}`; 400 `malformed`; 404 also where only private reports name it.
    """

    __test__ = False
    access = Open.PUBLIC

    def get(self, request: Request, number: int) -> Response:
        given = {name: request.query_params.get(name, "") for name in ("variant", "platform")}
        found = history_of(min(number, _INT64 - 1), request.user, **given)
        about = {
            "test": test_out(found.test),
            "variant": found.variant,
            "variants": found.variants,
            "looked_at": found.looked_at,
        }

        def rows(start: int, end: int) -> list[dict[str, Any]]:
            return [_run_out(detail) for detail in details_of(found.test, found.runs[start:end])]

        return Response(about | numbered(request, len(found.runs), rows))


def _run_out(detail: Detail) -> dict[str, Any]:
    report = detail.run.report
    return {
        "report": str(report.public_id),
        "platform": report.platform.slug,
        "origin": report.origin_name,
        "head_sha": report.head_sha,
        "received_at": report.received_at,
        "outcome": detail.run.word,
        "attempts": detail.attempts,
        "ms": detail.ms,
        "message": detail.message,
    }
