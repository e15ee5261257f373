"""docs/results.md prints the tables that the code applies."""

from collections.abc import Iterable
from pathlib import Path

from apps.results.formats import limits
from apps.results.formats.archive import REFUSALS
from apps.results.formats.cases import NOTES, Outcome
from apps.results.formats.chains import CHAINS, WORST_FIRST
from apps.results.formats.dialects import CHILDREN, DIALECTS, WORDS
from apps.results.formats.reportlog import LINES

GUIDE = (Path(__file__).parents[3] / "docs" / "results.md").read_text()


def label(outcome: Outcome | None) -> str:
    return "" if outcome is None else outcome.label


def words(outcome: Outcome) -> str:
    return ", ".join(f"`{word}`" for word, meant in WORDS.items() if meant is outcome)


TABLES: dict[str, Iterable[tuple[str, ...]]] = {
    "element | outcome | meaning": (
        (f"`{name}`", label(child.outcome), child.says) for name, child in CHILDREN.items()
    ),
    "element | its | begins | outcome | who writes it": (
        (f"`{row.element}`", row.part, f"`{row.begins}`", row.outcome.label, row.says) for row in DIALECTS
    ),
    "outcome | words": ((outcome.label, words(outcome)) for outcome in Outcome if words(outcome)),
    "line says | where | outcome": ((row.word, row.where, row.outcome.label) for row in LINES),
    "seen | sequence known | outcome | attempts | why": (
        (row.seen, "yes" if row.are_ordered else "no", row.outcome.label, str(row.attempts), row.says) for row in CHAINS
    ),
    "limit | at most | unit | of what": (
        (f"`{row.name}`", f"{row.value:,}", row.unit, row.says) for row in limits.rows(limits.Limits())
    ),
    "refusal | meaning": ((f"`{code}`", says) for code, says in REFUSALS.items()),
    "note | never green | meaning": (
        (f"`{code}`", "yes" if kind.is_incomplete else "", kind.says) for code, kind in NOTES.items()
    ),
}


def table(header: str, rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {header} |", "|" + "---|" * (header.count("|") + 1), *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def test_the_guide_prints_every_table() -> None:
    for header, rows in TABLES.items():
        _, found, rest = GUIDE.partition(f"| {header} |\n")
        assert found, header
        assert found + rest[: rest.find("\n\n") + 1 or None] == table(header, rows)


def test_the_guide_names_the_outcomes_from_worst_to_best() -> None:
    assert " › ".join(outcome.label for outcome in WORST_FIRST) in GUIDE
