"""Rows of the hub's answers for people, in columns; and the whole answer for programs."""

import json
from collections.abc import Sequence
from typing import Any

from accelhub_client.console import clean, result

CELL_MAX = 100
_GAP = "  "


def show_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows in columns as wide as their widest cell. The last column is as long as it is."""
    lines = [list(titles), *([clean(cell, CELL_MAX) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        padded = [cell.ljust(width) for cell, width in zip(line[:-1], widths)]
        result(_GAP.join((*padded, line[-1])).rstrip())


def show_json(value: Any) -> None:
    """Print a value as JSON in ASCII: a terminal or a CI finds no command in it."""
    result(json.dumps(value, indent=2).replace("##", "#\\u0023"))


def found_in(value: Any, path: str) -> Any:
    """What stands under a dotted path of objects; '' where there is nothing."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else value
