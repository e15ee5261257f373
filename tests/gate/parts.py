"""Facts for the gate's pure rules."""

import datetime
from typing import Any

from apps.gate.enums import BaseState, RowKind
from apps.gate.policy import Answer, Facts, JobFact, Part, RedTest, Row, answer
from apps.policies.policy import SHIPPED, Act, Handling, Policy

SENT = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.UTC)
KESTREL, FEN = "kestrel/torch", "fen/torch"


def hours(count: float) -> datetime.datetime:
    """So many hours after the dispatch."""
    return SENT + datetime.timedelta(hours=count)


def row(kind: RowKind = RowKind.JOB, label: str = "a row") -> Row:
    return Row(kind, label, f"/{kind}/{label}/")


def job(outcome: str = "success", began: float = 0.1, ended: float | None = 0.5, **values: Any) -> JobFact:
    """A job of the check `test`, in one run of its own."""
    number = values.pop("number", 1)
    if outcome == "in_progress":
        ended = None
    given = {"name": "test", "run": f"run {number}", "attempt": 1, "row": row(label=f"job {number}")}
    times = {"began_at": hours(began), "ended_at": None if ended is None else hours(ended)}
    return JobFact(**{"number": number, "outcome": outcome} | given | times | values)


def red(name: str = "test_a", base: BaseState = BaseState.GREEN, **values: Any) -> RedTest:
    return RedTest(row(RowKind.TEST, name), base=base, **values)


QUARANTINE = row(RowKind.QUARANTINE, "flaky since Monday")


def part(*jobs: JobFact, **values: Any) -> Part:
    """A part that blocks, sent its event."""
    given: dict[str, Any] = {"repository": KESTREL, "level": 4, "blocks": True, "asked_at": SENT, "sent_at": SENT}
    return Part(**given | {"jobs": jobs} | values)


def asked(*parts: Part, at: float = 1, policy: Policy = SHIPPED) -> Answer:
    """What the gate says so many hours after the dispatch."""
    return answer(Facts("ab" * 20, 7, parts), policy, hours(at))


def told(*parts: Part, at: float = 1, policy: Policy = SHIPPED) -> tuple[str, list[tuple[str, str, str]]]:
    """The same in short: verdict, and of each requirement type, effect and sentence."""
    found = asked(*parts, at=at, policy=policy)
    return str(found.verdict), [(str(one.type), str(one.effect), one.sentence) for one in found.requirements]


def policy_with(**handling: Handling | Act) -> Policy:
    """What ships, with other rows for outcomes."""
    rows = {name: one if isinstance(one, Handling) else Handling(one) for name, one in handling.items()}
    return Policy(SHIPPED.criteria, dict(SHIPPED.handling) | rows, SHIPPED.limits)
