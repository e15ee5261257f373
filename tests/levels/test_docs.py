"""docs/levels.md prints tables as they are in code. `python -m tests.documents tests.levels.test_docs` writes them
anew."""

from tests.documents import Document, code, rows


def promotion_rules() -> str:
    from apps.levels.promotion_policy import RULES

    return rows(["rule", "what it says"], [[code(name), says] for name, says in RULES.items()])


PAGE = Document("levels.md", promotion_rules)


def test_the_tables_are_those_of_the_code() -> None:
    PAGE.check()
