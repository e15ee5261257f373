"""Verbs of the gate in the API: the same services as the pages."""

import datetime
import uuid
from typing import Any

from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.models import User
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.gate import breaking, overriding, selectors
from apps.platforms.models import Repository

_INT64 = 2**63
_HOURS_MAX = 8_760


class OverrideIn(serializers.Serializer[Any]):
    """What a maintainer overrides. Without `sha` at every head, without `repository` all parts."""

    pr = serializers.IntegerField(min_value=1, max_value=_INT64 - 1)
    sha = serializers.RegexField(r"^[0-9a-f]{40}$", required=False, default="")
    repository = serializers.CharField(required=False, default="", max_length=140)
    hours = serializers.IntegerField(min_value=1, max_value=_HOURS_MAX)
    reason = serializers.CharField(max_length=overriding.REASON_MAX)


class ReasonIn(serializers.Serializer[Any]):
    """Why."""

    reason = serializers.CharField(max_length=overriding.REASON_MAX)


class OverrideOut(serializers.Serializer[Any]):
    """An override as it stands in the ledger."""

    id = serializers.UUIDField(source="public_id")
    pr = serializers.IntegerField(source="pr_number")
    sha = serializers.CharField()
    repository = serializers.CharField(source="repository.full_name", default=None)
    reason = serializers.CharField()
    by = serializers.CharField(source="by_label")
    from_at = serializers.DateTimeField()
    until = serializers.DateTimeField()
    withdrawn_at = serializers.DateTimeField()
    withdrawn_by = serializers.CharField()
    withdrawal = serializers.CharField()
    decision = serializers.IntegerField(source="event_seq")


class TripOut(serializers.Serializer[Any]):
    """A trip of a breaker."""

    id = serializers.UUIDField(source="public_id")
    repository = serializers.CharField(source="repository.full_name")
    kind = serializers.CharField()
    why = serializers.CharField()
    opened_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField()
    closed_by = serializers.CharField()
    closed_why = serializers.CharField()
    decision = serializers.IntegerField(source="event_seq")


class GrantView(APIView):
    """`POST /api/v1/overrides/`: let a part of a pull request pass for some hours, for maintainers of another
    organisation.

    Body `{pr, sha?, repository?, hours, reason}`. 201 with the override. 400 `malformed`; 401 `not_signed_in`; 403
    `not_permitted`, `recusal`.
    """

    access = Permission.OVERRIDE_GRANT

    def post(self, request: Request) -> Response:
        form = OverrideIn(data=request.data)
        form.is_valid(raise_exception=True)
        said, moment = form.validated_data, now()
        made = overriding.grant_override(
            pr_number=said["pr"],
            sha=said["sha"],
            repository=_repository(said["repository"]),
            reason=said["reason"],
            until=moment + datetime.timedelta(hours=said["hours"]),
            by=_user(request),
            now=moment,
        )
        return Response(OverrideOut(made).data, status=status.HTTP_201_CREATED)


def _repository(full_name: str) -> Repository | None:
    if not full_name:
        return None
    found = Repository.objects.filter(full_name__iexact=full_name).first()
    if found is None:
        raise Problem("malformed", f"repository: there is no {full_name[:60]!r}, send owner/name.", "repository")
    return found


class TakeBackView(APIView):
    """`POST /api/v1/overrides/{id}/withdraw/`: end an override before its time.

    Body `{reason}`. 200 with the override. 400 `malformed`; 401; 403 `not_permitted`; 404; 409 `override_stale`.
    """

    access = Permission.OVERRIDE_GRANT

    def post(self, request: Request, public_id: uuid.UUID) -> Response:
        found = selectors.override_or_404(public_id)
        overriding.withdraw_override(override=found, reason=_reason(request), by=_user(request), now=now())
        return Response(OverrideOut(selectors.override_or_404(public_id)).data)


class CloseView(APIView):
    """`POST /api/v1/breakers/{id}/close/`: give a repository its say back, for maintainers of another organisation.

    Body `{reason}`. 200 with the trip. 400 `malformed`; 401; 403 `not_permitted`, `recusal`; 404; 409 `breaker_stale`.
    """

    access = Permission.BREAKER_CLOSE

    def post(self, request: Request, public_id: uuid.UUID) -> Response:
        found = selectors.trip_or_404(public_id)
        breaking.close_breaker(trip=found, reason=_reason(request), by=_user(request), now=now())
        return Response(TripOut(selectors.trip_or_404(public_id)).data)


def _user(request: Request) -> User:
    assert request.user.is_authenticated, "the route asks for a permission"
    return request.user


def _reason(request: Request) -> str:
    form = ReasonIn(data=request.data)
    form.is_valid(raise_exception=True)
    said: str = form.validated_data["reason"]
    return said
