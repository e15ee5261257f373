"""A report's outcomes and the catalogue's part of it, to be saved: open data, for who may see the report."""

import uuid
from collections.abc import Iterable

from django.http import FileResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.views import APIView

from apps.core.permissions import Open
from apps.results.models import Report
from apps.results.report_rooms_api import read_report

PARQUET = "application/vnd.apache.parquet"


def _saved(answer: HttpResponseBase, report: Report, what: str) -> HttpResponseBase:
    answer.headers["Content-Disposition"] = (
        f'attachment; filename="{report.public_id}-{report.revision}-{what}.parquet"'
    )
    # The name says the revision: of that nothing ever changes. Whether one may see it does.
    answer.headers["Cache-Control"] = "private, no-cache"
    return answer


def _streamed(pieces: Iterable[bytes], report: Report, what: str) -> HttpResponseBase:
    return _saved(StreamingHttpResponse(pieces, content_type=PARQUET), report, what)


class OutcomesFile(APIView):
    """`GET /api/v1/reports/<id>/outcomes.parquet`: the outcomes of a ready report, a row a test.

    200 Parquet; 404; 409 `report_unready`, `report_removed`.
    """

    access = Open.PUBLIC

    def get(self, request: Request, public_id: uuid.UUID) -> HttpResponseBase:
        from apps.results import outcomes  # pyarrow: for the memory of those processes that are asked

        report = read_report(request, public_id)
        file = outcomes.opened(report.outcomes_name)
        return _saved(FileResponse(file, content_type=PARQUET), report, "outcomes")


class TestsFile(APIView):
    """`GET /api/v1/reports/<id>/tests.parquet`: the catalogue's rows of the tests that a ready report names.

    200 Parquet; 404; 409 `report_unready`, `report_removed`.
    """

    __test__ = False
    access = Open.PUBLIC

    def get(self, request: Request, public_id: uuid.UUID) -> HttpResponseBase:
        from apps.results import open_data  # pyarrow: for the memory of those processes that are asked

        report = read_report(request, public_id)
        return _streamed(open_data.tests_of(report), report, "tests")


class ReasonsFile(APIView):
    """`GET /api/v1/reports/<id>/reasons.parquet`: why a ready report skipped tests, each message with its class.

    200 Parquet; 404; 409 `report_unready`, `report_removed`.
    """

    access = Open.PUBLIC

    def get(self, request: Request, public_id: uuid.UUID) -> HttpResponseBase:
        from apps.results import open_data  # pyarrow: for the memory of those processes that are asked

        report = read_report(request, public_id)
        return _streamed(open_data.reasons_of(report), report, "reasons")
