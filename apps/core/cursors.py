"""Pages of a list in the API: `next` and `previous` are addresses, whose cursors nobody has to understand.

A cursor names the row after or before which its page begins, by the list's order and the primary key. Rows that come
meanwhile neither repeat one nor hide one.
"""

import base64
import datetime
import json
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from apps.core.errors import Problem
from apps.core.filters import FilterForm
from apps.core.text import UNSTORABLE

PAGE, PAGE_MAX = 50, 500
_INT64 = 2**63
_CURSOR_UNREADABLE = "cursor: cannot be read. Take it from `next` or `previous`."


def read_filters(form: FilterForm) -> None:
    """Refuse an address with a filter that cannot be read. Raises Problem `malformed` with its name."""
    if form.is_valid():
        return
    name, errors = next(iter(form.errors.items()))
    raise Problem("malformed", f"{name}: {errors[0]}", name)


def listed(request: Request, found: QuerySet[Any], out: type[serializers.Serializer[Any]]) -> Response:
    """One page of rows that are ordered by one field and the primary key: `{"next", "previous", "results"}`.

    `?limit=` rows, 50 where it is left out and at most 500; `?cursor=` from `next` or `previous`. Raises Problem
    `malformed`.
    """
    limit, place = _limit(request), _place(request, found)
    is_back = place is not None and place[0]
    if is_back:
        found = found.reverse()
    if place is not None:
        found = found.filter(_beyond(found, *place))
    rows = list(found[: limit + 1])
    has_more, rows = len(rows) > limit, rows[:limit]
    if is_back:
        rows.reverse()
    has_next, has_previous = has_more or is_back, has_more if is_back else place is not None
    links = {
        "next": _address(request, found, rows[-1], is_back=False) if rows and has_next else None,
        "previous": _address(request, found, rows[0], is_back=True) if rows and has_previous else None,
    }
    answer = Response({**links, "results": out(rows, many=True).data})
    # CSV has no other place for them.
    if given := [f'<{link}>; rel="{name}"' for name, link in links.items() if link]:
        answer["Link"] = ", ".join(given)
    return answer


def numbered(request: Request, total: int, rows: Callable[[int, int], list[Any]]) -> dict[str, Any]:
    """One page of `total` rows that stand in a fixed order, `rows(start, end)` of which are made: `{"next", "previous",
    "results"}`. Raises Problem `malformed`."""
    limit, start = _limit(request), _start(request)
    end = start + limit
    return {
        "next": _numbered_address(request, end) if end < total else None,
        "previous": _numbered_address(request, max(start - limit, 0)) if start else None,
        "results": rows(start, min(end, total)),
    }


def _start(request: Request) -> int:
    text = request.query_params.get("cursor", "")
    if not text:
        return 0
    try:
        (start,) = json.loads(base64.urlsafe_b64decode(text.encode()))
        if type(start) is not int or not 0 <= start < _INT64:
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        raise Problem("malformed", _CURSOR_UNREADABLE, "cursor") from None
    return start


def _numbered_address(request: Request, start: int) -> str:
    cursor = base64.urlsafe_b64encode(json.dumps([start]).encode()).decode()
    return settings.BASE_URL + str(replace_query_param(request.get_full_path(), "cursor", cursor))


def _field(found: QuerySet[Any]) -> str:
    return str(found.query.order_by[0]).removeprefix("-")


def _column(found: QuerySet[Any]) -> Any:
    meta, name = found.model._meta, _field(found)
    return meta.pk if name == "pk" else meta.get_field(name)


def _beyond(found: QuerySet[Any], is_back: bool, value: Any, pk: int) -> Q:
    descends = str(found.query.order_by[0]).startswith("-") != is_back  # a reversed list keeps its order's spelling
    name, comparison = _field(found), "lt" if descends else "gt"
    return Q(**{f"{name}__{comparison}": value}) | Q(**{name: value, f"pk__{comparison}": pk})


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", "") or str(PAGE)
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 0 < int(text) <= PAGE_MAX):
        raise Problem("malformed", f"limit: saw {text[:20]!r}, send a number from 1 to {PAGE_MAX}.", "limit")
    return int(text)


def _place(request: Request, found: QuerySet[Any]) -> tuple[bool, Any, int] | None:
    text = request.query_params.get("cursor", "")
    if not text:
        return None
    try:
        is_back, value, pk = json.loads(base64.urlsafe_b64decode(text.encode()))
        value = _column(found).to_python(value)
        if isinstance(value, datetime.datetime):
            value = value.astimezone(datetime.UTC)  # a zone can lead out of the calendar
        if type(is_back) is not bool or type(pk) is not int or abs(pk) >= _INT64 or value is None:
            raise ValueError
        if (isinstance(value, int) and abs(value) >= _INT64) or (isinstance(value, str) and UNSTORABLE.search(value)):
            raise ValueError
    except (ValueError, TypeError, OverflowError, RecursionError, ValidationError):
        raise Problem("malformed", _CURSOR_UNREADABLE, "cursor") from None
    return is_back, value, pk


def _address(request: Request, found: QuerySet[Any], row: Any, *, is_back: bool) -> str:
    # A time keeps its microseconds.
    value = getattr(row, _field(found))
    value = value.isoformat() if hasattr(value, "isoformat") else value
    cursor = base64.urlsafe_b64encode(json.dumps([is_back, value, row.pk]).encode()).decode()
    return settings.BASE_URL + str(replace_query_param(request.get_full_path(), "cursor", cursor))
