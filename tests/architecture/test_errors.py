"""The table of codes, and the code that refuses, know the same codes."""

import ast
from collections.abc import Iterator

from accelhub.env import BASE_DIR
from apps.core.api import _DRF_CODES
from apps.core.errors import CODES


def raised() -> Iterator[tuple[str, str]]:
    """(file, code) of every `Problem("…")` and `Refused("…")` in apps/."""
    for path in sorted((BASE_DIR / "apps").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            first = node.args[0]
            if name in {"Problem", "Refused"} and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield str(path.relative_to(BASE_DIR)), first.value


def test_every_code_that_is_raised_stands_in_the_table() -> None:
    found = list(raised())
    assert [where for where in found if where[1] not in CODES] == []
    assert {"level_stale", "never_dispatched", "malformed"} <= {code for _, code in found}


def test_every_code_in_the_table_is_raised_somewhere() -> None:
    used = {code for _, code in raised()} | set(_DRF_CODES.values())
    assert set(CODES) - used == set()


def test_every_line_of_the_table_says_what_to_do() -> None:
    assert [code for code, row in CODES.items() if not (row.title and row.next_step.endswith("."))] == []
