"""Every dependency earns its line in ADR 1, and the requirements name no place to get them from."""

import re
import tomllib
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def declared(requirements: list[str]) -> set[str]:
    return {match[0].lower() for line in requirements if (match := re.match(r"[A-Za-z0-9_.-]+", line))}


def explained() -> tuple[set[str], set[str]]:
    """Packages named in the first column of the ADR's two tables: runtime, development."""
    runtime, development = (ROOT / "docs/adr/0001-dependencies.md").read_text().split("For development only")
    tables = []
    for text in (runtime, development):
        cells = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
        names = {name.strip().lower() for cell in cells for name in cell.split(",")}
        tables.append({re.sub(r"\[.*\]", "", name) for name in names} - {"package", "---"})
    return tables[0], tables[1]


def test_every_dependency_is_explained_and_nothing_else_is() -> None:
    runtime, development = explained()
    assert runtime == declared(PROJECT["dependencies"])
    assert development == declared(PROJECT["optional-dependencies"]["dev"])


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_requirements_are_pinned_with_hashes_and_name_no_index(name: str) -> None:
    text = (ROOT / name).read_text()
    assert not re.search(r"https?://|index-url|find-links", text)
    pinned = re.findall(r"^([a-z0-9][a-z0-9_.-]*)==", text, re.MULTILINE)
    assert declared(PROJECT["dependencies"]) <= set(pinned)
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in block for block in blocks)
