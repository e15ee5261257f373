"""Every template compiles, and is asked for by somebody."""

import re
from pathlib import Path

import pytest
from django.template.loader import get_template

from accelhub.env import BASE_DIR

FOLDER = BASE_DIR / "templates"
TEMPLATES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.html"))
# Building blocks wait for the pages of rooms that are not built yet.
KIT = "components/"


@pytest.mark.parametrize("name", TEMPLATES)
def test_it_compiles(name: str) -> None:
    get_template(name)


@pytest.mark.parametrize("name", TEMPLATES)
def test_it_neither_trusts_text_nor_carries_script_or_style(name: str) -> None:
    text = (FOLDER / name).read_text()
    forbidden = [r"\|safe\b", r"autoescape off", r"\sstyle=", r"<style", r"<script(?! src=)", r"\son\w+=", r"https?://"]
    assert [pattern for pattern in forbidden if re.search(pattern, text)] == []


def sources() -> str:
    python = [path for folder in ("apps", "accelhub") for path in Path(BASE_DIR / folder).rglob("*.py")]
    return "\n".join(path.read_text() for path in [*python, *FOLDER.rglob("*.html")])


def test_every_page_is_rendered_by_something() -> None:
    text = sources()
    assert [name for name in TEMPLATES if not name.startswith(KIT) and f'"{name}"' not in text] == []
