"""docs/quarantine.md prints tables as they are in code. `python -m tests.documents tests.quarantine.test_docs` writes
them anew."""

from tests.documents import Document, code, rows


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


PAGE = Document("quarantine.md", kinds, rules, reasons, placeholders, life, words, guards)


def test_the_tables_are_those_of_the_code() -> None:
    PAGE.check()
