"""`/fairness/` and its counterpart in the API."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from rest_framework.request import Request
from rest_framework.response import Response

from apps.appeals.fairness import COLUMNS, DEFAULT, WINDOWS, Row, rows
from apps.core.access import public
from apps.core.clock import now
from apps.core.cursors import read_filters
from apps.core.filters import FilterForm
from apps.core.permissions import Open
from apps.core.rendering import render_page
from apps.core.sheets import SheetView


class FairnessForm(FilterForm):
    """How far back."""

    days = forms.TypedChoiceField(
        label="Window", required=False, coerce=int, choices=[(days, f"{days} days") for days in WINDOWS]
    )


@public
@require_safe
def fairness(request: HttpRequest) -> HttpResponse:
    """`/fairness/?days=`: how the policy was applied to each platform."""
    form, moment = FairnessForm(request.GET or {"days": DEFAULT}), now()
    days = form.given().get("days", DEFAULT)
    context = {"form": form, "days": days, "rows": rows(days=days, now=moment), "columns": COLUMNS}
    return render_page(request, "appeals/fairness.html", context)


class FairnessView(SheetView):
    """`GET /api/v1/fairness/?days=&format=`: how the policy was applied to each platform, over 30, 90 (where it is left
    out) or 365 days.

    200 `{"days", "as_of", "columns": [{"key", "title", "says", "unit"}], "results": [{"platform", "name", a value for
    each column (null: unknown), "details": {…}}]}`; as CSV a line for each platform. 400 `malformed`.
    """

    access = Open.PUBLIC
    columns = ("platform", "name", *(column.key for column in COLUMNS))

    def get(self, request: Request) -> Response:
        form = FairnessForm(request.query_params)
        read_filters(form)
        days, moment = form.given().get("days", DEFAULT), now()
        return Response(
            {
                "days": days,
                "as_of": moment.isoformat(),
                "columns": [
                    {"key": one.key, "title": one.title, "says": one.says, "unit": one.unit} for one in COLUMNS
                ],
                "results": [_written(row) for row in rows(days=days, now=moment)],
            }
        )


def _written(row: Row) -> dict[str, Any]:
    return {
        "platform": row.platform.slug,
        "name": row.platform.name,
        **{column.key: cell.value for column, cell in row.cells},
        "details": {column.key: cell.detail for column, cell in row.cells if cell.detail},
    }
