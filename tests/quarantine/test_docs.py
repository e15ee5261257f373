"""docs/quarantine.md prints tables as they are in code. `python -m tests.quarantine.test_docs` writes them anew."""

import re
from pathlib import Path

from tests.results.test_docs import code, rows

DOCUMENT = Path(__file__).parents[2] / "docs" / "quarantine.md"
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def kinds() -> str:
    from apps.quarantine.enums import FlakeKind

    return rows(["kind", "what was seen"], [[code(kind.value), kind.label] for kind in FlakeKind])


def rules() -> str:
    from apps.quarantine.policy import SHIPPED
    from apps.quarantine.rule_table import table

    lines = [[code(row.name), row.part, row.says, *row.values] for row in table(*SHIPPED.values())]
    return rows(["rule", "about", "what it means", *SHIPPED], lines)


def reasons() -> str:
    from apps.quarantine.enums import ReasonClass

    return rows(["class", "meaning"], [[code(one.value), one.label] for one in ReasonClass])


def placeholders() -> str:
    from apps.quarantine.policy import PLACEHOLDERS

    return ", ".join(code(word) for word in sorted(PLACEHOLDERS) if word) + ".\n"


def life() -> str:
    from apps.quarantine.policy import TRANSITIONS

    return rows(
        ["from", "what is done", "to"],
        [[state.label, verb.label, end.label] for (state, verb), end in TRANSITIONS.items()],
    )


def words() -> str:
    from apps.quarantine.disabled_list import WORDS

    return rows(["word", "for upstream's runner"], [[code(word), meaning] for word, meaning in WORDS.items()])


def guards() -> str:
    from apps.quarantine.disabled_list import GUARDS

    return rows(["reason", "when"], [[alarm.label, when] for alarm, when in GUARDS.items()])


TABLES = {table.__name__: table for table in (kinds, rules, reasons, placeholders, life, words, guards)}


def filled(text: str) -> str:
    """The document with its tables as they are in code."""
    return BLOCK.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}{found[3]}", text)


def test_the_tables_are_those_of_the_code() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert filled(text) == text
    assert [found[2] for found in BLOCK.finditer(text)] == list(TABLES)


if __name__ == "__main__":
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "accelhub.settings")
    os.environ.setdefault("ACCELHUB_DEBUG", "1")
    import django

    django.setup()
    DOCUMENT.write_text(filled(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
