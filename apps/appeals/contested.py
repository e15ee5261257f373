"""Which decisions can be contested, whose they are, and what undoes each: one table.

Every compensating decision goes through the verb that anyone else would use, in the transaction of the outcome.
"""

import datetime
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apps.accounts.models import User
from apps.accounts.services import actor_of
from apps.audit.enums import Action, ActorKind
from apps.audit.models import Event
from apps.audit.selectors import body_of, head
from apps.core.errors import Problem
from apps.gate.breaking import close_breaker, set_trip_aside
from apps.gate.models import BreakerTrip, Override
from apps.gate.overriding import withdraw_override
from apps.governance.models import Waiver
from apps.governance.waiving import grant_waiver
from apps.platforms.models import Platform, Repository
from apps.platforms.policy import BY_CODE
from apps.platforms.services import change_level, restore_overturned
from apps.quarantine.models import Quarantine
from apps.quarantine.services import reopen


@dataclass(frozen=True)
class Undoing:
    """What overturning does beyond setting rows aside: who does it, why, when, for which appeal."""

    event: Event
    reason: str
    by: User
    now: datetime.datetime
    evidence: dict[str, Any]


# Returns whether it made a decision: False where nothing is left to undo.
Undo = Callable[[Undoing], bool]


@dataclass(frozen=True)
class Contestable:
    """One action of the log that can be contested. `undo`: None where people have to carry the outcome out."""

    then: str
    undo: Undo | None = None


def _level(one: Undoing) -> bool:
    body = body_of(one.event)
    before, after = BY_CODE[body["before"]["level"]], BY_CODE[body["after"]["level"]]
    if after.number < before.number:
        restore_overturned(
            overturned=one.event, reason=one.reason, actor=actor_of(one.by), now=one.now, evidence=one.evidence
        )
        return True
    change_level(
        repository=Repository.objects.get(public_id=one.event.subject_id),
        level=before.number,
        expected_level=after.number,
        reason=one.reason,
        actor=actor_of(one.by),
        now=one.now,
        evidence=f"overturned: decision #{one.event.seq}",
    )
    return True


def _waiver(one: Undoing) -> bool:
    waiver = Waiver.objects.select_related("repository__platform").get(
        event_seq=body_of(one.event)["evidence"]["decision"]
    )
    if waiver.until_at <= one.now:
        return False
    grant_waiver(
        repository=waiver.repository,
        criterion=waiver.criterion,
        reason=one.reason,
        until_at=waiver.until_at,
        by=one.by,
        now=one.now,
    )
    return True


def _quarantine(one: Undoing) -> bool:
    quarantine = Quarantine.objects.select_related("platform").get(public_id=one.event.subject_id)
    reopen(quarantine=quarantine, revision=quarantine.revision, reason=one.reason, actor=actor_of(one.by), now=one.now)
    return True


def _breaker(one: Undoing) -> bool:
    trip = BreakerTrip.objects.select_related("repository__platform").get(public_id=one.event.subject_id)
    set_trip_aside(trip=trip, now=one.now)
    if trip.closed_at is not None:
        return False
    close_breaker(trip=trip, reason=one.reason, by=one.by, now=one.now)
    return True


def _override(one: Undoing) -> bool:
    override = Override.objects.select_related("repository").get(public_id=one.event.subject_id)
    if override.withdrawn_at is not None or override.until <= one.now:
        return False
    withdraw_override(override=override, reason=one.reason, by=one.by, now=one.now)
    return True


_BY_PEOPLE = "a maintainer makes the change that the outcome names"

CONTESTABLE: dict[Action, Contestable] = {
    Action.LEVEL_CHANGED: Contestable("the level that stood before is restored, if it changed no further", _level),
    Action.WAIVER_WITHDRAWN: Contestable("the waiver is granted again until its end", _waiver),
    Action.QUARANTINE_RELEASED: Contestable("the quarantine is proposed again, as the same record", _quarantine),
    Action.BREAKER_OPENED: Contestable("the trip counts no more, and the breaker is closed", _breaker),
    Action.OVERRIDE_GRANTED: Contestable("the override is withdrawn", _override),
    Action.DETAILS_CHANGED: Contestable(_BY_PEOPLE),
    Action.TRANSFER_REFUSED: Contestable(_BY_PEOPLE),
    Action.QUARANTINE_DECLINED: Contestable(_BY_PEOPLE),
    Action.QUARANTINE_KEPT: Contestable(_BY_PEOPLE),
}


def decider_of(event: Event) -> str:
    """The public id of who decided, '' where the hub did by itself. Where upstream's file is the authority the log says
    twice what happened: what somebody decided, and that the file made it so, by the hub."""
    if event.actor_kind == ActorKind.USER:
        return event.actor_id
    evidence = body_of(event).get("evidence")
    seq = evidence.get("decision") if isinstance(evidence, dict) else None
    decided = Event.objects.filter(seq=seq, actor_kind=ActorKind.USER).first() if isinstance(seq, int) else None
    return decided.actor_id if decided else ""


Whose = tuple[Platform, Repository | None]


def _of_repository(key: str) -> Whose:
    found = Repository.objects.select_related("platform").get(public_id=key)
    return found.platform, found


def _of_quarantine(key: str) -> Whose | None:
    found = Quarantine.objects.select_related("platform").get(public_id=key)
    return None if found.platform is None else (found.platform, None)


def _of_trip(key: str) -> Whose | None:
    found = BreakerTrip.objects.select_related("repository__platform").get(public_id=key)
    return found.repository.platform, found.repository


def _of_override(key: str) -> Whose | None:
    found = Override.objects.select_related("repository__platform").get(public_id=key)
    return None if found.repository is None else (found.repository.platform, found.repository)


_SUBJECTS: dict[str, Callable[[str], Whose | None]] = {
    "repository": _of_repository,
    "quarantine": _of_quarantine,
    "breakertrip": _of_trip,
    "override": _of_override,
}


def whose(event: Event) -> Whose:
    """The platform that a decision is about, and the repository if it is about one. Raises Problem `malformed` for a
    decision that no appeal takes."""
    found = None
    if event.is_decision and event.action in CONTESTABLE:
        found = _SUBJECTS[event.subject_kind](str(uuid.UUID(event.subject_id)))
    if found is None:
        detail = f"decision: #{event.seq} ({event.get_action_display()}) is none that one platform can appeal."
        raise Problem("malformed", detail, "decision")
    return found


def compensate(one: Undoing) -> int | None:
    """Undo the contested decision by its compensating one, in the caller's transaction. Returns its number in the log;
    None where there is nothing to undo, or people have to. Raises the Problem of the verb that refuses."""
    undo = CONTESTABLE[Action(one.event.action)].undo
    # Whoever records holds the log's head until the transaction ends: the last link is the verb's own.
    return head().seq if undo is not None and undo(one) else None
