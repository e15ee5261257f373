"""Verbs on what a repository is sent: which events, how many at once, and when none."""

import dataclasses
import datetime
import re
from dataclasses import dataclass

from django.db import transaction

from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.services import Actor, record
from apps.core.errors import Problem
from apps.platforms.edits import subject_of
from apps.platforms.models import MaintenanceWindow, Participation, Repository
from apps.platforms.policy import WEBHOOK_EVENTS, refuse_window

PATTERNS_MAX = 20
REF_MAX, LABEL_MAX = 200, 100
IN_FLIGHT_MAX = 1_000
NOTE_MAX = 200
# What Git allows in the name of a ref, and what makes a glob of it.
REF_PATTERN = re.compile(rf"[^\s\x00-\x1f\x7f~^:\\]{{1,{REF_MAX}}}")
LABEL = re.compile(rf"[^,\x00-\x1f\x7f]{{1,{LABEL_MAX}}}")


@dataclass(frozen=True)
class Choice:
    """What a repository chooses, as Participation keeps it. The default is what holds without a row."""

    events: tuple[str, ...] = WEBHOOK_EVENTS
    refs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    sample_percent: int = 100
    max_in_flight: int | None = None

    @classmethod
    def of(cls, known: Participation | None) -> "Choice":
        """What holds."""
        if known is None:
            return cls()
        return cls(
            tuple(known.events), tuple(known.refs), tuple(known.labels), known.sample_percent, known.max_in_flight
        )


def participation_of(repository: Repository) -> Participation | None:
    """What the repository has chosen; None where it takes part in everything."""
    return Participation.objects.filter(repository=repository).first()


@transaction.atomic
def change_participation(
    *, repository: Repository, choice: Choice, expected_revision: int, actor: Actor, now: datetime.datetime
) -> Event | None:
    """Choose which events a repository is sent from now on. Returns None, and writes nothing, where that holds already.

    `expected_revision` is the one the chooser saw; 0 where there was no choice yet. Raises Problem: `malformed` with
    the field, `participation_stale`.
    """
    _check(choice)
    Repository.objects.select_for_update().get(pk=repository.pk)
    known = participation_of(repository)
    revision = known.revision if known else 0
    if revision != expected_revision:
        raise Problem("participation_stale", f"{repository.full_name}: someone chose otherwise meanwhile.")
    before = Choice.of(known)
    if choice == before:
        return None
    after = _spelled(choice)
    Participation.objects.update_or_create(
        repository=repository, defaults=after | {"changed_at": now, "revision": revision + 1}
    )
    return record(
        action=Action.PARTICIPATION_CHANGED,
        actor=actor,
        subject=subject_of(repository),
        summary=f"{repository.full_name} takes part otherwise: {_difference(before, choice)}",
        before=_spelled(before),
        after=after,
        now=now,
        is_decision=False,
    )


def _spelled(choice: Choice) -> dict[str, object]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(choice).items()}


def _difference(before: Choice, after: Choice) -> str:
    names = [f.name for f in dataclasses.fields(Choice) if getattr(before, f.name) != getattr(after, f.name)]
    return " and ".join(name.replace("_", " ") for name in names)


def _check(choice: Choice) -> None:
    if not choice.events or not set(choice.events) <= set(WEBHOOK_EVENTS):
        words = ", ".join(WEBHOOK_EVENTS)
        raise Problem("malformed", f"events: choose at least one of {words}. To end it all, be unlisted.", "events")
    for field, written, pattern in (("refs", choice.refs, REF_PATTERN), ("labels", choice.labels, LABEL)):
        if len(written) > PATTERNS_MAX:
            raise Problem("malformed", f"{field}: {len(written)} lines, at most {PATTERNS_MAX}.", field)
        if wrong := next((word for word in written if not pattern.fullmatch(word)), None):
            raise Problem("malformed", f"{field}: {wrong[:60]!r} can be no name of one, write one a line.", field)
    if not 1 <= choice.sample_percent <= 100:
        detail = f"sample_percent: {choice.sample_percent} is not from 1 to 100."
        raise Problem("malformed", detail, "sample_percent")
    if choice.max_in_flight is not None and not 1 <= choice.max_in_flight <= IN_FLIGHT_MAX:
        detail = f"max_in_flight: {choice.max_in_flight} is not from 1 to {IN_FLIGHT_MAX:,}; leave it out for any."
        raise Problem("malformed", detail, "max_in_flight")


@transaction.atomic
def announce_window(
    *,
    repository: Repository,
    starts_at: datetime.datetime,
    ends_at: datetime.datetime,
    note: str,
    actor: Actor,
    now: datetime.datetime,
) -> MaintenanceWindow:
    """Announce when a repository is sent nothing. Public from now on. Raises Problem `malformed` with the field and the
    rule of policy.WINDOW_RULES that refuses it."""
    note = note.strip()
    if not 0 < len(note) <= NOTE_MAX:
        raise Problem("malformed", f"note: say why in 1 to {NOTE_MAX} characters, everyone can read it.", "note")
    Repository.objects.select_for_update().get(pk=repository.pk)
    others = MaintenanceWindow.objects.filter(repository=repository, withdrawn_at=None)
    if refusal := refuse_window((starts_at, ends_at), others.values_list("starts_at", "ends_at"), now=now):
        raise Problem("malformed", refusal, refusal.partition(":")[0])
    window = MaintenanceWindow.objects.create(
        repository=repository, starts_at=starts_at, ends_at=ends_at, note=note, announced_at=now
    )
    record(
        action=Action.WINDOW_ANNOUNCED,
        actor=actor,
        subject=subject_of(repository),
        summary=f"{repository.full_name} will be in maintenance from {_minute(starts_at)} to {_minute(ends_at)} UTC",
        after=_times(window),
        reason=note,
        evidence={"window": str(window.public_id)},
        now=now,
        is_decision=False,
    )
    return window


@transaction.atomic
def withdraw_window(*, window: MaintenanceWindow, actor: Actor, now: datetime.datetime) -> bool:
    """Take a window back before it begins, or end it now. Returns False when it has ended or was withdrawn."""
    Repository.objects.select_for_update().get(pk=window.repository_id)
    rows = MaintenanceWindow.objects.filter(pk=window.pk, withdrawn_at=None)
    before = _times(window)
    if rows.filter(starts_at__gte=now).update(withdrawn_at=now) == 1:
        said, after = "will not be in maintenance", {}
    elif rows.filter(ends_at__gt=now).update(ends_at=now) == 1:
        said, after = "has ended its maintenance early", before | {"ends_at": now.isoformat()}
    else:
        return False
    repository = window.repository
    record(
        action=Action.WINDOW_WITHDRAWN,
        actor=actor,
        subject=subject_of(repository),
        summary=f"{repository.full_name} {said}: {_minute(window.starts_at)} to {_minute(window.ends_at)} UTC",
        before=before,
        after=after,
        evidence={"window": str(window.public_id)},
        now=now,
        is_decision=False,
    )
    return True


def _times(window: MaintenanceWindow) -> dict[str, str]:
    return {"starts_at": window.starts_at.isoformat(), "ends_at": window.ends_at.isoformat()}


def _minute(moment: datetime.datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"
