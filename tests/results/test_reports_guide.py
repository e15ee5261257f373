"""docs/reports.md prints the tables that the code applies."""

import re

from accelhub.env import BASE_DIR
from apps.results.changes import MEANINGS
from apps.results.elsewhere import VERDICTS
from apps.results.enums import ReportFlag
from apps.results.meta import FIELDS
from apps.results.quotas import QUOTAS

GUIDE = (BASE_DIR / "docs/reports.md").read_text()


def rows(heading: str) -> list[tuple[str, ...]]:
    """The table below this head, as cells."""
    table = GUIDE.split(f"\n{heading}\n", 1)[1].split("\n\n", 1)[0]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in table.splitlines()[1:]]


def test_the_guide_prints_the_fields_of_meta() -> None:
    assert rows("| field | at most | required | what |") == [
        (f"`{field.path}`", str(field.cap), "yes" if field.is_required else "no", field.kind) for field in FIELDS
    ]


def test_the_guide_prints_the_limits() -> None:
    assert rows("| what | limit | past it |") == [(quota.what, quota.limit, quota.answer) for quota in QUOTAS]


def test_the_guide_prints_the_flags() -> None:
    assert rows("| flag | means |") == [(f"`{flag.value}`", flag.label) for flag in ReportFlag]


def test_the_guide_prints_the_changes() -> None:
    assert rows("| change | means |") == [(f"`{change.value}`", meaning) for change, (_, meaning) in MEANINGS.items()]


def test_the_guide_prints_the_verdicts() -> None:
    assert rows("| verdict | means |") == [(f"`{one.value}`", meaning) for one, (_, meaning) in VERDICTS.items()]


def test_every_code_that_the_guide_names_exists() -> None:
    from apps.core.errors import CODES

    table = GUIDE.split("## Refusals")[1].split("## In-tree")[0]
    named = re.findall(r"`([a-z]+_[a-z]+)`", table)
    assert set(named) - set(CODES) == set()
