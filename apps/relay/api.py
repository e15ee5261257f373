"""The API of the relay."""

from typing import Any

from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.cursors import listed, read_filters
from apps.core.permissions import Open, Permission
from apps.relay import selectors
from apps.relay.forms import DispatchForm, RejectionForm
from apps.relay.models import Dispatch


class DispatchOut(serializers.ModelSerializer[Dispatch]):
    """A dispatch. `next_attempt_at` is null where it is not pending, or waits until one in flight has ended."""

    delivery_id = serializers.CharField(source="delivery.delivery_id")
    repository = serializers.CharField(source="repository.full_name")

    class Meta:
        model = Dispatch
        fields = (
            "delivery_id",
            "repository",
            "state",
            "attempts",
            "next_attempt_at",
            "error",
            "created_at",
            "sent_at",
        )


class DispatchList(APIView):
    """`GET /api/v1/dispatches/?delivery=&state=&repository=&cursor=&limit=`: the outbox, newest first.

    Without `delivery` and `state`: what is not sent. 400 `malformed` names the filter that cannot be read; 401
    `not_signed_in`; 403 `not_permitted`.
    """

    access = Permission.DISPATCH_VIEW

    def get(self, request: Request) -> Response:
        form = DispatchForm(request.query_params)
        read_filters(form)
        return listed(request, selectors.dispatches_found(form.filters()), DispatchOut)


class RejectionOut(serializers.Serializer[Any]):
    """A counted refusal. `ids` are those that a verified token named, else empty texts: a repository's and its owner's,
    or a Buildkite pipeline's and its organisation's."""

    issuer = serializers.CharField()
    ids = serializers.SerializerMethodField()
    code = serializers.CharField()
    reason = serializers.CharField()
    count = serializers.IntegerField()
    first_seen = serializers.DateTimeField()
    last_seen = serializers.DateTimeField()

    def get_ids(self, row: Any) -> dict[str, str]:
        return {"repository": row.repository_claim, "id": row.repository_id_claim, "owner_id": row.owner_id_claim}


class RejectionsView(APIView):
    """`GET /api/v1/rejections/?code=&repository=&sort=&cursor=&limit=`: refused callbacks, counted: all for operators,
    their platforms' for vendor members.

    200 `{"next", "previous", "results": [{issuer, ids {repository, id, owner_id}, code, reason, count, first_seen,
    last_seen}]}`. 400 `malformed`; 401 `not_signed_in`; 403 `not_permitted` for who is neither.
    """

    access = Open.SIGNED_IN

    def get(self, request: Request) -> Response:
        if not selectors.sees_rejections(request.user):
            raise exceptions.PermissionDenied(
                "Only who runs the hub, and who speaks for a platform, sees refused callbacks."
            )
        form = RejectionForm(request.query_params)
        read_filters(form)
        found = selectors.rejections_found(request.user, form.filters())
        return listed(request, found, RejectionOut)
