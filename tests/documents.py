"""Documents that print tables of the code: what stands between two marks is generated, and a test compares it.

A document's test module declares `PAGE = Document("name.md", …)`; `python -m tests.documents MODULE` writes it
anew.
"""

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Document:
    """A file of docs/ and the tables in it, by name, in their order."""

    def __init__(self, name: str, *tables: Callable[[], str]) -> None:
        self.path = DOCS / name
        self.tables = {table.__name__: table for table in tables}

    def filled(self) -> str:
        """The document with its tables as they are in code."""
        return BLOCK.sub(lambda found: f"{found[1]}{self.tables[found[2]]()}{found[3]}", self.text())

    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def check(self) -> None:
        """Every table is in it, as it is in code."""
        assert self.filled() == self.text(), f"{self.path.name} is not as the code: python -m tests.documents MODULE"
        assert [found[2] for found in BLOCK.finditer(self.text())] == list(self.tables)


def rows(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A table of Markdown."""
    heads = list(heads)
    table = [heads, ["---"] * len(heads), *lines]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in table)


def code(text: str) -> str:
    """Text as code; nothing where there is none."""
    shown = text.replace("\n", "↵")
    return f"`{shown}`" if shown else "–"


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "accelhub.settings")
    os.environ.setdefault("ACCELHUB_DEBUG", "1")
    import django

    django.setup()
    for module in sys.argv[1:]:
        page = importlib.import_module(module).PAGE
        page.path.write_text(page.filled(), encoding="utf-8")
