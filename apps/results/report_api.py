"""The API of reports: what became of an upload."""

import datetime
import uuid
from typing import Any

from django.db.models import prefetch_related_objects
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.permissions import Open
from apps.results.models import Report
from apps.results.report_selectors import is_read, missing_of, quarantined_of, report_or_404


class FileOut(serializers.Serializer[Any]):
    """One file of a report, and how reading it went."""

    name = serializers.CharField()
    state = serializers.CharField()
    parsed = serializers.IntegerField()
    dropped = serializers.IntegerField()
    notes = serializers.JSONField()


class ReportOut(serializers.Serializer[Report]):
    """A receipt. `progress` in per cent; `counts` null until it is parsed; `reason`: why it failed or was
    removed; `quarantined`: how many of the red ones are listed apart;
    `raw_removed_at`: since when the uploaded bytes are not kept any more."""

    id = serializers.UUIDField(source="public_id")
    variant = serializers.CharField()
    state = serializers.CharField()
    progress = serializers.IntegerField()
    counts = serializers.DictField(allow_null=True)
    files = FileOut(many=True)
    flags = serializers.ListField()
    raw_removed_at = serializers.SerializerMethodField()
    quarantined = serializers.SerializerMethodField()
    shards = serializers.SerializerMethodField()
    reason = serializers.SerializerMethodField()

    def get_shards(self, report: Report) -> dict[str, Any]:
        is_removed = hasattr(report, "removal")
        return {
            "declared": report.shards,
            "missing": [] if is_removed else missing_of(report.shards, [one.shard for one in report.uploads.all()]),
        }

    def get_quarantined(self, report: Report) -> int | None:
        """How many of its red tests are listed apart: `counts` count them all the same."""
        return len(quarantined_of(report)) if is_read(report) else None

    def get_raw_removed_at(self, report: Report) -> datetime.datetime | None:
        """Since when the uploaded bytes are not kept any more."""
        return max((one.raw_removed_at for one in report.uploads.all() if one.raw_removed_at), default=None)

    def get_reason(self, report: Report) -> str:
        return report.removal.reason if hasattr(report, "removal") else report.failure


class ReportView(APIView):
    """`GET /api/v1/reports/<id>/`: the receipt of an upload: public from L2 up, below that for the platform's
    members and maintainers.

    200 `{id, variant, state, progress, counts {total, passed, failed, error, skipped, xfailed, xpassed, flaky, lost,
    unknown} or null, files [{name, state, parsed, dropped, notes}], flags, shards {declared, missing}, raw_removed_at
    or null, quarantined or null, reason}`; 404.
    """

    access = Open.PUBLIC

    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        report = report_or_404(public_id, request.user)
        prefetch_related_objects([report], "uploads")
        return Response(ReportOut(report).data)
