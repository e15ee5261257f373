"""Lists as CSV: `?format=csv`. What downstreams wrote is text in a spreadsheet, never a formula.

A cell that a spreadsheet would reckon with (it begins with = + - @, or with white space before one of them) gets an
apostrophe in front: so the spreadsheet shows it as it was written. Numbers, times and empty cells stay as they are.
"""

import csv
import datetime
import io
import json
import re
from collections.abc import Mapping
from typing import Any

from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.views import APIView

_FORMULA = re.compile(r"\s*[=+\-@\uff0b\uff0d\uff1d\uff20]|[\t\r\n]")


class CsvRenderer(BaseRenderer):
    """Renders the rows that a view answers by its `columns`: keys of a row, `a.b` for a key inside of another."""

    media_type = "text/csv"
    format = "csv"
    charset = "utf-8"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        view = renderer_context["view"]
        rows = view.csv_rows(data) if hasattr(view, "csv_rows") else data["results"]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow(view.columns)
        writer.writerows([cell(_inside(row, column)) for column in view.columns] for row in rows)
        return text.getvalue().encode()


class SheetView(APIView):
    """A view of the API that answers JSON and CSV. `columns` is the CSV's head."""

    renderer_classes = (JSONRenderer, CsvRenderer)
    columns: tuple[str, ...] = ()


def _inside(row: Mapping[str, Any], column: str) -> Any:
    value: Any = row
    for key in column.split("."):
        value = value[key]
    return value


def cell(value: Any) -> str:
    """A value as a cell's text: nothing for None, words of a list apart by spaces, JSON for what is deeper."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        value = " ".join(value)
    elif not isinstance(value, str):
        value = json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)
    return f"'{value}" if _FORMULA.match(value) else value
