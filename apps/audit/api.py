"""The API of the log."""

import json
from typing import Any

from django.conf import settings
from django.http import StreamingHttpResponse
from django.urls import reverse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.audit.forms import DecisionForm
from apps.audit.models import Checkpoint, Event
from apps.audit.selectors import body_of, checkpoints_found, decisions_found
from apps.audit.views import saved_export
from apps.core.cursors import listed, read_filters
from apps.core.permissions import Open
from apps.core.sheets import SheetView


class EventOut(serializers.Serializer[Any]):
    """The body of an event as the chain holds it, with its links and its page."""

    def to_representation(self, event: Event) -> dict[str, Any]:
        return body_of(event) | {
            "previous_hash": event.previous_hash,
            "hash": event.hash,
            "url": settings.BASE_URL + reverse("audit:decision", args=[event.seq]),
        }


class DecisionList(SheetView):
    """`GET /api/v1/decisions/?about=&subject=&action=&actor=&since=&until=&cursor=&limit=&format=`: the public
    decisions, newest first, each as the chain holds it.

    200 `{"next", "previous", "results": [...]}`; 400 `malformed` names the filter that cannot be read.
    """

    access = Open.PUBLIC
    columns = (
        *("seq", "at", "action", "actor.kind", "actor.label", "subject.kind", "subject.label", "summary", "reason"),
        *("before", "after", "evidence", "previous_hash", "hash", "url"),
    )

    def get(self, request: Request) -> Response:
        form = DecisionForm(request.query_params)
        read_filters(form)
        return listed(request, decisions_found(form.filters()).order_by("-seq"), EventOut)


class ExportView(APIView):
    """`GET /api/v1/decisions/export.jsonl`: the whole log in order, a line an event (docs/decisions.md)."""

    access = Open.PUBLIC

    def get(self, request: Request) -> StreamingHttpResponse:
        return saved_export()


class CheckpointOut(serializers.Serializer[Any]):
    """A checkpoint: what is kept (`text`, `signature`), what the text says, and the file's address."""

    def to_representation(self, checkpoint: Checkpoint) -> dict[str, Any]:
        told = json.loads(checkpoint.text)
        return told | {
            "key_id": checkpoint.key_id,
            "text": checkpoint.text,
            "signature": checkpoint.signature,
            "url": settings.BASE_URL + reverse("audit:checkpoint_file", args=[checkpoint.number]),
        }


class CheckpointList(APIView):
    """`GET /api/v1/decisions/checkpoints/?cursor=&limit=`: signed checkpoints, newest first.

    200 `{"next", "previous", "results": [...]}`; 400 `malformed`.
    """

    access = Open.PUBLIC

    def get(self, request: Request) -> Response:
        return listed(request, checkpoints_found(), CheckpointOut)
