"""docs/appeals.md prints tables as they are in code. `python -m tests.documents tests.appeals.test_docs` writes them
anew."""

from tests.documents import Document, code, rows


def rules() -> str:
    from apps.appeals.policy import RULES

    return rows(["rule", "what it says"], [[name, says] for name, says in RULES.items()])


def claims() -> str:
    from apps.appeals.enums import Claim
    from apps.appeals.policy import claims as offered

    of_figures = offered(is_decision=False)
    return rows(
        ["claim", "what it says", "of a figure"],
        [[code(one.value), one.label, "yes" if one in of_figures else "no"] for one in Claim],
    )


def limits() -> str:
    from apps.policies.policy import LIMITS, NUMBERS

    shown = [(name, row) for name, row in LIMITS.items() if row.part == "appeals"]
    return rows(
        ["limit", "what it means", "ships as"], [[code(name), row.says, str(NUMBERS[name])] for name, row in shown]
    )


def outcomes() -> str:
    from apps.appeals.enums import Outcome
    from apps.appeals.policy import ENDINGS

    return rows(
        ["outcome", "what it does", "state"],
        [[code(one.value), one.label.partition(": ")[2], code(ENDINGS[one].state.value)] for one in Outcome],
    )


def figures() -> str:
    from apps.appeals.policy import FIGURES
    from apps.results.figure_table import METRICS

    return rows(["figure", "title"], [[code(row.key), row.title] for row in METRICS if row.key in FIGURES])


def decisions() -> str:
    from apps.appeals.contested import CONTESTABLE

    return rows(
        ["action of the log", "when it is overturned"],
        [[code(action.value), row.then] for action, row in CONTESTABLE.items()],
    )


def fairness() -> str:
    from apps.appeals.fairness import COLUMNS

    return rows(["column", "unit", "what it counts"], [[code(one.key), one.unit, one.says] for one in COLUMNS])


PAGE = Document("appeals.md", rules, claims, limits, outcomes, figures, decisions, fairness)


def test_the_tables_are_those_of_the_code() -> None:
    PAGE.check()
