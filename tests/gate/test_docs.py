"""docs/gate.md prints tables as they are in code. `python -m tests.documents tests.gate.test_docs` writes them anew."""

from tests.documents import Document, code, rows


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


def wrong() -> str:
    from apps.gate.replay_policy import WRONG

    return rows(["a block is wrong", "where"], [[code(why.value), says] for why, says in WRONG.items()])


def settled() -> str:
    from apps.gate.replay_policy import SETTLED

    return rows(["outcome", "the moment that is told"], [[code(one.value), says] for one, says in SETTLED.items()])


PAGE = Document("gate.md", rules, kinds, outcomes, limits, carried, settled, wrong)


def test_the_tables_are_those_of_the_code() -> None:
    PAGE.check()
