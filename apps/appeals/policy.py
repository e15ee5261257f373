"""States and rules of appeals: tables and pure functions. Source: docs/appeals.md."""

import datetime
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from apps.appeals.enums import Claim, Outcome, State
from apps.audit.enums import Action
from apps.core.workdays import deadline
from apps.results.set_aside import OF_JOBS

ROWS_MAX = 200
LINKS_MAX, LINK_MAX = 10, 500
WORDS_MAX = 5_000
REASON_MAX = 2_000
# Windows that pages of figures show: what can be contested is what people saw.
WINDOWS = (7, 14, 30)
FIGURES = OF_JOBS
# So often a decision, or a row, may be appealed: again where the first appeal was withdrawn.
APPEALED_MOST = 2


@dataclass(frozen=True)
class Ending:
    """What an outcome leads to."""

    state: State
    action: Action


ENDINGS: dict[Outcome, Ending] = {
    Outcome.UPHOLD: Ending(State.UPHELD, Action.APPEAL_UPHELD),
    Outcome.AMEND: Ending(State.AMENDED, Action.APPEAL_AMENDED),
    Outcome.OVERTURN: Ending(State.OVERTURNED, Action.APPEAL_OVERTURNED),
}
DECIDED = tuple(ending.state for ending in ENDINGS.values())

RULES: dict[str, str] = {
    "who appeals": "a member of the platform that the decision or the figure is about",
    "in time": "a decision within the days that the policy gives; rows lie in the window of the figure, or in the "
    "longest that a criterion may look at",
    "once": "a decision, and each row, stands in one appeal; a withdrawn one frees them for one more",
    "official": "the decision and the figure stay in force, raw and unchanged, while the appeal is open",
    "independent": "whoever decides neither speaks for the platform nor made the appeal or the contested "
    "decision, nor is of the organisation of any of them",
    "deadline": "so many working days of the platform's calendar; it pauses once, before it is over, and runs on by "
    "itself; overdue is shown and reminded",
    "accepted": "criteria read the raw figure less accepted rows from then on; both are shown",
    "compensation": "an overturned decision is undone by the compensating decision in the same moment",
}


def claims(*, is_decision: bool) -> list[Claim]:
    """What can be claimed: a procedure is a decision's."""
    return [claim for claim in Claim if is_decision or claim is not Claim.PROCEDURE]


def state_at(state: str, paused_until: datetime.datetime | None, now: datetime.datetime) -> State:
    """The state as people read it at a moment."""
    if state == State.OPEN and paused_until is not None and now < paused_until:
        return State.PAUSED
    return State(state)


def is_overdue(state: str, deadline_at: datetime.datetime, now: datetime.datetime) -> bool:
    """Whether nobody has decided in time."""
    return state == State.OPEN and deadline_at <= now


def moved(deadline_at: datetime.datetime, days: int, calendar: str) -> datetime.datetime:
    """A deadline, the end of a working day, so many working days later."""
    return deadline(deadline_at - datetime.timedelta(seconds=1), days, calendar)


def accepted_rows(outcome: Outcome, rows: Collection[UUID], named: Collection[UUID]) -> list[UUID]:
    """The rows that an outcome sets aside. Raises ValueError with the sentence where it does not fit them."""
    if outcome is Outcome.AMEND:
        if not 0 < len(named) < len(rows):
            raise ValueError(
                f"amending accepts some of the {len(rows)} rows, saw {len(named)}: else uphold or overturn."
            )
        return list(named)
    if named:
        raise ValueError(f"saw {len(named)}: only amending names rows, {outcome.value} is about all of them.")
    return list(rows) if outcome is Outcome.OVERTURN else []
