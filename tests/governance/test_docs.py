"""docs/governance.md prints the policy that ships. `python -m tests.documents tests.governance.test_docs` writes it
anew."""

from tests.documents import Document, code, rows


def criteria() -> str:
    from apps.policies.policy import CRITERIA

    lines = [
        [f"L{row.level}", row.use.value, row.of.title, row.asks, str(row.window_days or "–"), row.source, code(row.key)]
        for row in CRITERIA
    ]
    return rows(["level", "to", "criterion", "asked", "days", "source", "key"], lines)


def handling() -> str:
    from apps.policies.policy import HANDLING, OUTCOMES

    return rows(
        ["outcome", "it is", "the gate"], [[code(name), says, HANDLING[name].asks] for name, says in OUTCOMES.items()]
    )


def limits() -> str:
    from apps.policies.policy import LIMITS, NUMBERS

    lines = [
        [code(name), limit.part, limit.says, str(NUMBERS[name]), f"{limit.least} to {limit.most}"]
        for name, limit in LIMITS.items()
    ]
    return rows(["limit", "about", "it is", "ships as", "may be"], lines)


def notice_ends() -> str:
    from apps.levels.falling_policy import NOTICE_ENDS

    return rows(["it ends", "by", "when"], [[state.label, end.by, end.when] for state, end in NOTICE_ENDS.items()])


def downgrade_ends() -> str:
    from apps.levels.falling_policy import DOWNGRADE_ENDS

    return rows(["it ends", "by", "when"], [[state.label, end.by, end.when] for state, end in DOWNGRADE_ENDS.items()])


PAGE = Document("governance.md", criteria, handling, limits, notice_ends, downgrade_ends)


def test_the_tables_are_those_of_the_code() -> None:
    PAGE.check()
