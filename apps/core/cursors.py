"""Pages of a list in the API: `next` and `previous` are addresses, whose cursors nobody has to understand."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import NotFound, ParseError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

from apps.core.errors import Problem
from apps.core.filters import FilterForm

PAGE, PAGE_MAX = 50, 500


class Cursors(CursorPagination):
    """`?cursor=` from `next` or `previous`, `?limit=` rows a page. The order is the queryset's own, made whole by the
    primary key, so that rows that come meanwhile neither repeat nor hide one."""

    page_size = PAGE
    page_size_query_param = "limit"
    max_page_size = PAGE_MAX

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:
        return tuple(queryset.query.order_by)

    def decode_cursor(self, request: Request) -> Cursor | None:
        try:
            return super().decode_cursor(request)
        except NotFound:
            raise ParseError("cursor: cannot be read. Take it from `next` or `previous`.") from None


def read_filters(form: FilterForm) -> None:
    """Refuse an address with a filter that cannot be read. Raises Problem `malformed` with its name."""
    if form.is_valid():
        return
    name, errors = next(iter(form.errors.items()))
    raise Problem("malformed", f"{name}: {errors[0]}", name)


def listed(request: Request, queryset: Any, out: type[serializers.Serializer[Any]], view: Any) -> Any:
    """One page of a queryset, as the answer `{"next", "previous", "results"}`."""
    cursors = Cursors()
    rows = cursors.paginate_queryset(queryset, request, view=view)
    return cursors.get_paginated_response(out(rows, many=True).data)
