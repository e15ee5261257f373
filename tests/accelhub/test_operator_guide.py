"""The operator's guide and the code name the same variables and checks."""

import re
from pathlib import Path

from apps.accounts.policy import Role, permissions_of
from apps.console.operations import ROOMS
from apps.core.permissions import Permission

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GUIDE = "".join((DOCS / name).read_text() for name in ("operator.md", "operator-reference.md"))
READS = re.compile(r'env\.\w+\(\s*"([A-Z_]+)"')


def test_every_variable_that_is_read_stands_in_the_guide_and_none_besides() -> None:
    sources = [path.read_text() for path in (ROOT / "accelhub").rglob("*.py")]
    read = {name for source in sources for name in READS.findall(source)}
    rows = [line.split("|")[1] for line in GUIDE.splitlines() if line.startswith("| `")]
    names = re.compile(r"`((?:ACCELHUB|SOCIAL)_[A-Z_]+|(?:DATABASE|REDIS|EMAIL)_URL|PORT)`")
    told = {name for row in rows for name in names.findall(row)}
    assert told == read


def test_every_system_check_stands_in_the_guide() -> None:
    ids = set(re.findall(r"accelhub\.[EW]\d{3}", (ROOT / "accelhub" / "checks.py").read_text()))
    assert set(re.findall(r"accelhub\.[EW]\d{3}", GUIDE)) == ids


def test_every_room_stands_in_the_guide_with_whom_it_lets_in() -> None:
    section = GUIDE.partition("### Where to look")[2].partition("### ")[0]
    told = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")]
    assert {title: (maintainers, operators) for title, _counts, maintainers, operators in told[1:]} == {
        room.title: tuple(
            "yes" if room.permission in permissions_of({role}) else "" for role in (Role.MAINTAINER, Role.OPERATOR)
        )
        for room in ROOMS
        if room.permission is not Permission.USER_CHANGE
    }


def test_every_link_between_the_guides_leads_somewhere() -> None:
    def anchors(text: str) -> set[str]:
        titles = re.findall(r"(?m)^#+ (.+)$", text)
        return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}

    texts = {name: (DOCS / name).read_text() for name in ("operator.md", "operator-reference.md")}
    dead = [
        (name, target, anchor)
        for name, text in texts.items()
        for target, anchor in re.findall(r"\]\((operator[\w.-]*)?#([\w-]+)\)", text)
        if anchor not in anchors(texts[target or name])
    ]
    assert dead == []
