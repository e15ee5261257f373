"""Declared outcomes, for programs."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.permissions import Open
from apps.platforms.selectors import repository_or_404
from apps.relay.selectors import declared_of


class DeclaredOut(serializers.Serializer[Any]):
    """A declaration. `withdrawn_at` is null while it holds."""

    id = serializers.UUIDField(source="public_id")
    workflow = serializers.CharField()
    job_name = serializers.CharField()
    outcome = serializers.CharField()
    reason = serializers.CharField()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    declared_at = serializers.DateTimeField()
    declared_by = serializers.CharField()
    withdrawn_at = serializers.DateTimeField()


class DeclaredView(APIView):
    """`GET /api/v1/repositories/{owner}/{name}/declared/`: what maintainers declared of its jobs, newest first.

    200 `{"results": [...]}`, withdrawn ones included. 404.
    """

    access = Open.PUBLIC

    def get(self, request: Request, owner: str, name: str) -> Response:
        rows = declared_of(repository_or_404(owner, name))
        return Response({"results": DeclaredOut(rows, many=True).data})
