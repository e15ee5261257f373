"""The API of the relay."""

from typing import Any

from rest_framework import exceptions, generics, pagination, serializers

from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.relay.forms import DispatchForm
from apps.relay.models import Dispatch
from apps.relay.selectors import dispatches_found

PAGE = 100


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


class _Newest(pagination.CursorPagination):
    ordering = "-pk"
    page_size = PAGE

    def decode_cursor(self, request: Any) -> Any:
        try:
            return super().decode_cursor(request)
        except exceptions.NotFound:
            raise Problem("malformed", "cursor: cannot be read, take it from `next` or `previous`.", "cursor") from None


class DispatchList(generics.ListAPIView[Dispatch]):
    """`GET /api/v1/dispatches/?delivery=&state=&repository=`: the outbox, newest first, with `next` and `previous`.

    Without `delivery` and `state`: what is not sent. 400 `malformed` names the filter that cannot be read; 401
    `not_signed_in`; 403 `not_permitted`.
    """

    access = Permission.DISPATCH_VIEW
    serializer_class = DispatchOut
    pagination_class = _Newest

    def get_queryset(self) -> Any:
        form = DispatchForm(self.request.GET)
        if not form.is_valid():
            field, errors = next(iter(form.errors.items()))
            raise Problem("malformed", f"{field}: {errors[0]}", field)
        return dispatches_found(form.filters())
