"""docs/gate.md prints tables as they are in code. `python -m tests.gate.test_docs` writes them anew."""

import re
from pathlib import Path

from tests.results.test_docs import code, rows

DOCUMENT = Path(__file__).parents[2] / "docs" / "gate.md"
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def rules() -> str:
    from apps.gate.policy import RULES

    return rows(["rule", "what it says"], [[code(name), says] for name, says in RULES.items()])


def kinds() -> str:
    from apps.gate.enums import Kind

    return rows(["type", "what it is"], [[code(one.value), one.label] for one in Kind])


def outcomes() -> str:
    from apps.policies.policy import HANDLING, OUTCOMES

    return rows(
        ["outcome", "what it means", "the gate"],
        [[code(name), says, HANDLING[name].asks] for name, says in OUTCOMES.items()],
    )


def limits() -> str:
    from apps.policies.policy import LIMITS, NUMBERS

    shown = [(name, row) for name, row in LIMITS.items() if row.part == "breaker"]
    return rows(
        ["limit", "what it means", "ships as"], [[code(name), row.says, str(NUMBERS[name])] for name, row in shown]
    )


def carried() -> str:
    from apps.checks.carried import CARRIED

    return rows(["when", "check run"], [[rule.when, rule.then] for rule in CARRIED])


TABLES = {table.__name__: table for table in (rules, kinds, outcomes, limits, carried)}


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
