"""Verbs on temporary downgrades: made at once, undone in one step, or made formal by a decision."""

import datetime
from typing import Any

from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.services import actor_of
from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.services import HUB, Actor, Subject, record
from apps.core.errors import Problem, written
from apps.core.ids import public_id
from apps.core.workdays import deadline, named
from apps.governance.notices import announce_event
from apps.levels.falling_enums import DowngradeState
from apps.levels.models_falling import REASON_MAX, Downgrade
from apps.levels.readers import deciders, readers_of
from apps.levels.ways_back import open_way_back
from apps.platforms import authority
from apps.platforms.models import LevelInterval, Repository
from apps.platforms.policy import CHECKS_FROM, LEVELS
from apps.platforms.recusals import refuse_own
from apps.platforms.restoring import restore_level
from apps.platforms.services import change_level
from apps.policies.selectors import policy_at


@transaction.atomic
def downgrade(
    *,
    repository: Repository,
    level: int,
    reason: str,
    by: User,
    now: datetime.datetime,
    expected_level: int | None = None,
    device: str = "",
) -> Downgrade:
    """Take a repository at L3 or L4 down at once, until it is decided by the deadline.

    `expected_level` is the level that was seen; left out, the one that `repository` was read with. Raises Problem:
    `malformed` (no reason, a level that is not below), `recusal`, `already_downgraded`, `level_transition` (it is not
    at L3 or L4), `allowlist_elsewhere` (upstream's file decides, so nothing is in force at once), and what
    platforms.services.change_level raises.
    """
    reason = written(reason, "reason", REASON_MAX)
    refuse_own(by, repository.platform)
    if authority.is_file():
        raise Problem("allowlist_elsewhere", f"{authority.address()} is the allowlist: nothing is in force at once.")
    locked = Repository.objects.select_for_update(of=("self",)).select_related("platform").get(pk=repository.pk)
    before = locked.level
    expected = repository.level if expected_level is None else expected_level
    if before != expected:
        raise Problem(
            "level_stale", f"{locked.full_name} is at {locked.level_code}, you decided on {LEVELS[expected].code}."
        )
    if before < CHECKS_FROM:
        raise Problem("level_transition", f"It is at {locked.level_code}: only L3 and L4 are downgraded for a while.")
    if not 0 <= level < before:
        raise Problem("malformed", f"level: saw {level}, send one below {locked.level_code}.", "level")
    key, platform = public_id(), locked.platform
    ends = deadline(now, policy_at(now).limits["downgrade_working_days"], platform.calendar)
    changed = change_level(
        repository=locked,
        level=level,
        reason=reason,
        evidence=f"Temporary, to be decided by {ends:%Y-%m-%d %H:%M} UTC.",
        device=device,
        expected_level=expected,
        actor=actor_of(by),
        now=now,
    )
    try:
        with transaction.atomic():
            made = Downgrade.objects.create(
                public_id=key,
                repository=locked,
                level_from=before,
                level_to=level,
                reason=reason,
                by_label=actor_of(by).label,
                calendar=platform.calendar,
                at=now,
                deadline_at=ends,
                event_seq=changed.seq,
            )
    except IntegrityError:
        raise Problem("already_downgraded", f"{locked.full_name} is under a temporary downgrade.") from None
    event = record(
        action=Action.DOWNGRADED,
        actor=actor_of(by),
        subject=_subject(made),
        summary=f"{locked.full_name} taken down from {made.from_code} to {made.to_code} for a while",
        before={"level": made.from_code},
        after={"level": made.to_code, "deadline": ends.isoformat(), "calendar": platform.calendar},
        reason=f"{reason}\n\nTo be decided by {ends:%Y-%m-%d %H:%M} UTC, in {named(platform.calendar)}.",
        evidence={"decision": changed.seq},
        now=now,
    )
    announce_event(event, readers_of(platform), now=now)
    return made


@transaction.atomic
def undo_downgrade(*, downgrade: Downgrade, reason: str, by: User, now: datetime.datetime) -> Event:
    """Put the repository back to exactly the level before, in one step. Raises Problem: `malformed` (no reason),
    `recusal`, `downgrade_stale`, `level_stale` (its level was changed since)."""
    reason = written(reason, "reason", REASON_MAX)
    refuse_own(by, downgrade.repository.platform)
    locked = _locked(downgrade)
    changed = restore_level(
        repository=locked.repository,
        lowered_seq=locked.event_seq,
        reason=reason,
        evidence={"downgrade": str(locked.public_id)},
        actor=actor_of(by),
        now=now,
    )
    event = _end(locked, DowngradeState.UNDONE, actor_of(by), reason, now, {"decision": changed.seq})
    announce_event(event, readers_of(locked.repository.platform), now=now)
    return event


@transaction.atomic
def confirm_downgrade(*, downgrade: Downgrade, reason: str, by: User, now: datetime.datetime) -> Event:
    """Make a downgrade formal: the level stays, and its way back is kept. Raises Problem: `malformed` (no reason),
    `recusal`, `downgrade_stale`, `level_stale` (its level was changed since)."""
    reason = written(reason, "reason", REASON_MAX)
    refuse_own(by, downgrade.repository.platform)
    locked = _locked(downgrade)
    if not _holds(locked):
        raise Problem("level_stale", f"{locked.repository.full_name} is at {locked.repository.level_code} meanwhile.")
    event = _end(locked, DowngradeState.CONFIRMED, actor_of(by), reason, now)
    open_way_back(locked.repository, locked.level_to + 1, event_seq=event.seq, now=now)
    announce_event(event, readers_of(locked.repository.platform), now=now)
    return event


def follow_downgrades(*, now: datetime.datetime) -> int:
    """End what another change of level has overtaken, and remind maintainers once of what is overdue. Returns how many
    were ended or reminded of."""
    return sum(_follow(one, now) for one in Downgrade.objects.filter(state=DowngradeState.OPEN).order_by("pk"))


@transaction.atomic
def _follow(downgrade: Downgrade, now: datetime.datetime) -> bool:
    try:
        locked = _locked(downgrade)
    except Problem:  # decided meanwhile
        return False
    if not _holds(locked):
        why = f"The repository is at {locked.repository.level_code}, by another decision."
        _end(locked, DowngradeState.SUPERSEDED, HUB, why, now)
        return True
    if locked.reminded_at is not None or now < locked.deadline_at:
        return False
    Downgrade.objects.filter(pk=locked.pk).update(reminded_at=now)
    event = record(
        action=Action.DOWNGRADE_OVERDUE,
        actor=HUB,
        subject=_subject(locked),
        summary=f"The temporary downgrade of {locked.repository.full_name} is overdue",
        reason=f"It was to be decided by {locked.deadline_at:%Y-%m-%d %H:%M} UTC.",
        now=now,
        is_decision=False,
    )
    announce_event(event, deciders(), now=now)
    return True


def _holds(downgrade: Downgrade) -> bool:
    """Whether the downgrade is the newest change of the repository's level."""
    newest = LevelInterval.objects.filter(repository=downgrade.repository, ended_at=None)
    return newest.filter(event_seq=downgrade.event_seq).exists()


def _locked(downgrade: Downgrade) -> Downgrade:
    """The open downgrade, held with its repository until the transaction ends. Raises Problem `downgrade_stale`."""
    Repository.objects.select_for_update().get(pk=downgrade.repository_id)
    rows = Downgrade.objects.select_for_update(of=("self",)).select_related("repository__platform")
    held = rows.get(pk=downgrade.pk)
    if held.state != DowngradeState.OPEN:
        raise Problem("downgrade_stale", f"The downgrade is {DowngradeState(held.state).label}: {held.ended_why}")
    return held


def _subject(downgrade: Downgrade) -> Subject:
    return Subject("downgrade", str(downgrade.public_id), downgrade.repository.full_name)


_ENDED: dict[DowngradeState, tuple[Action, str]] = {
    DowngradeState.UNDONE: (Action.DOWNGRADE_UNDONE, "undone"),
    DowngradeState.CONFIRMED: (Action.DOWNGRADE_CONFIRMED, "made formal"),
    DowngradeState.SUPERSEDED: (Action.DOWNGRADE_SUPERSEDED, "overtaken by another change of level"),
}


def _end(
    downgrade: Downgrade,
    state: DowngradeState,
    actor: Actor,
    why: str,
    now: datetime.datetime,
    evidence: dict[str, Any] | None = None,
) -> Event:
    """The last step of every end: a compare-and-set, and its event."""
    ended = {"state": state, "ended_at": now, "ended_by": actor.label, "ended_why": why}
    if Downgrade.objects.filter(pk=downgrade.pk, state=DowngradeState.OPEN).update(**ended) != 1:
        raise Problem("downgrade_stale", "The downgrade has ended meanwhile.")
    action, words = _ENDED[state]
    return record(
        action=action,
        actor=actor,
        subject=_subject(downgrade),
        summary=f"Temporary downgrade of {downgrade.repository.full_name} {words}",
        before={"state": DowngradeState.OPEN.value},
        after={"state": state.value, "level": LEVELS[downgrade.repository.level].code},
        reason=why,
        evidence={"downgrade": downgrade.event_seq} | (evidence or {}),
        now=now,
    )
