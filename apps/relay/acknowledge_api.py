"""Acknowledgements of red jobs, for programs."""

import uuid
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api import text
from apps.core.clock import now
from apps.core.permissions import Open
from apps.core.sheets import SheetView
from apps.relay.acknowledging import REASON_MAX, acknowledge
from apps.relay.selectors import job_or_404


class AcknowledgementOut(serializers.Serializer[Any]):
    """What one person said of a red job."""

    id = serializers.UUIDField(source="public_id")
    job = serializers.UUIDField(source="job.public_id")
    by = serializers.CharField(source="by_label")
    reason = serializers.CharField()
    expected_at = serializers.DateTimeField()
    at = serializers.DateTimeField()


class AcknowledgementList(SheetView):
    """`GET /api/v1/jobs/{id}/acknowledgements/?format=`: what oncalls said of a red job, in order.

    200 `{"results": [{id, job, by, reason, expected_at, at}]}`. 404.
    """

    access = Open.PUBLIC
    columns = tuple(AcknowledgementOut().fields)

    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        rows = job_or_404(public_id).acknowledgements.select_related("job")
        return Response({"results": AcknowledgementOut(rows, many=True).data})


class AcknowledgeIn(serializers.Serializer[Any]):
    """What to say. The time with its zone; without one it is UTC."""

    reason = text(REASON_MAX)
    expected_at = serializers.DateTimeField()


class AcknowledgeView(APIView):
    """`POST /api/v1/jobs/{id}/acknowledge/`: for the platform's members and the repository's oncalls.

    Body `{reason, expected_at}`. 200 with the acknowledgement. 400 `malformed`; 401 `not_signed_in`; 403
    `not_permitted`; 404; 409 `job_not_red`, `already_acknowledged`.
    """

    access = Open.SIGNED_IN

    def post(self, request: Request, public_id: uuid.UUID) -> Response:
        job, user = job_or_404(public_id), request.user
        assert user.is_authenticated, "the route asks for it"
        form = AcknowledgeIn(data=request.data)
        form.is_valid(raise_exception=True)
        made = acknowledge(job=job, by=user, now=now(), **form.validated_data)
        return Response(AcknowledgementOut(made).data)
