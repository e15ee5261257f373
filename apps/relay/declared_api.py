"""Declared outcomes, for programs."""

import uuid
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.services import actor_of
from apps.core.api import choice, text
from apps.core.clock import now
from apps.core.permissions import Open, Permission
from apps.platforms.selectors import repository_or_404
from apps.relay.declared import declare_outcome, withdraw_outcome
from apps.relay.declared_forms import NAME_MAX, REASON_MAX
from apps.relay.enums import Declared
from apps.relay.selectors import declared_of, declared_or_404


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


class DeclareIn(serializers.Serializer[Any]):
    """What to declare. Times with their zone; without one they are UTC. Names exactly as callbacks spell them."""

    workflow = text(NAME_MAX, trim_whitespace=False)
    job_name = text(NAME_MAX, trim_whitespace=False, allow_blank=True, required=False, default="")
    outcome = choice(Declared.values, "outcome")
    reason = text(REASON_MAX)
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()


class DeclareView(APIView):
    """`POST /api/v1/repositories/{owner}/{name}/declare/`: say what a job is meant to be.

    Body `{workflow, job_name?, outcome, reason, starts_at, ends_at}`. 200 with the declaration. 400 `malformed`; 401
    `not_signed_in`; 403 `not_permitted`; 404; 409 `already_declared`.
    """

    access = Permission.OUTCOME_DECLARE

    def post(self, request: Request, owner: str, name: str) -> Response:
        form = DeclareIn(data=request.data)
        form.is_valid(raise_exception=True)
        values = form.validated_data | {"outcome": Declared(form.validated_data["outcome"])}
        repository = repository_or_404(owner, name)
        made = declare_outcome(repository=repository, actor=actor_of(request.user), now=now(), **values)
        return Response(DeclaredOut(made).data)


class WithdrawIn(serializers.Serializer[Any]):
    """Why."""

    reason = text(REASON_MAX)


class WithdrawView(APIView):
    """`POST /api/v1/repositories/{owner}/{name}/declared/{id}/withdraw/`: take a declaration back.

    Body `{reason}`. 200 with the declaration, also where it was withdrawn before. 400 `malformed`; 401 `not_signed_in`;
    403 `not_permitted`; 404.
    """

    access = Permission.OUTCOME_DECLARE

    def post(self, request: Request, owner: str, name: str, public_id: uuid.UUID) -> Response:
        form = WithdrawIn(data=request.data)
        form.is_valid(raise_exception=True)
        found = declared_or_404(repository_or_404(owner, name), str(public_id))
        reason = form.validated_data["reason"]
        withdraw_outcome(declared=found, reason=reason, actor=actor_of(request.user), now=now())
        found.refresh_from_db()
        return Response(DeclaredOut(found).data)
