"""Reading the log."""

import contextlib
import datetime
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet
from django.http import Http404

from apps.audit.chain import COLUMNS, Link, stamp
from apps.audit.models import Checkpoint, CheckpointPush, Event, Head, LastVerification


def decisions(*, subject_kind: str = "", subject_ids: list[str] | None = None) -> QuerySet[Event]:
    """The public decisions, newest first; of one subject kind and some ids where given."""
    events = Event.objects.filter(is_decision=True)
    if subject_kind:
        events = events.filter(subject_kind=subject_kind, subject_id__in=subject_ids or [])
    return events


@dataclass(frozen=True)
class DecisionFilters:
    """Which decisions: about whom (and of which kind), what, by whom, and on which days (both included, UTC)."""

    about: str = ""
    subject: str = ""
    action: str = ""
    actor: str = ""
    since: datetime.date | None = None
    until: datetime.date | None = None


def decisions_found(filters: DecisionFilters) -> QuerySet[Event]:
    """The public decisions that fit, newest first."""
    found = decisions()
    if filters.about:
        found = found.filter(subject_label__icontains=filters.about)
    if filters.subject:
        found = found.filter(subject_kind=filters.subject)
    if filters.action:
        found = found.filter(action=filters.action)
    if filters.actor:
        found = found.filter(actor_label__icontains=filters.actor)
    if filters.since:
        found = found.filter(at__date__gte=filters.since)
    return found.filter(at__date__lte=filters.until) if filters.until else found


def events_about(kind: str, public_id: str) -> list[tuple[Event, dict[str, Any]]]:
    """All that happened to one subject, newest first, with what was recorded. For who may see the subject: events that
    are no decisions are among them."""
    found = Event.objects.filter(subject_kind=kind, subject_id=public_id).order_by("-seq")
    return [(event, body_of(event)) for event in found]


def decision_or_404(seq: int) -> Event:
    """One public decision. Events that are no decisions are not found here."""
    try:
        return Event.objects.get(seq=seq, is_decision=True)
    except Event.DoesNotExist:
        raise Http404 from None


def body_of(event: Event) -> dict[str, Any]:
    """The record itself, read."""
    return json.loads(event.body)


@dataclass(frozen=True)
class FieldChange:
    """One field of the subject, as pages print it."""

    name: str
    before: str
    after: str

    @property
    def is_change(self) -> bool:
        return self.before != self.after


def changes_of(event: Event) -> list[FieldChange]:
    """What an event changed, field by field."""
    body = body_of(event)
    before, after = body["before"], body["after"]
    names = sorted(before.keys() | after.keys())
    return [FieldChange(name, _printed(before.get(name)), _printed(after.get(name))) for name in names]


def _printed(value: Any) -> str:
    if value in (None, "", []):
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def last_verification() -> LastVerification | None:
    """The newest proof of the chain; None before the first."""
    return LastVerification.objects.first()


def head() -> Head:
    """The last link, as of now."""
    return Head.objects.get(pk=1)


def newest_checkpoint() -> Checkpoint | None:
    """The last checkpoint; None before the first."""
    return Checkpoint.objects.first()


def checkpoints_found() -> QuerySet[Checkpoint]:
    """Every checkpoint, newest first."""
    return Checkpoint.objects.order_by("-number")


def checkpoint_or_404(number: int) -> Checkpoint:
    try:
        return Checkpoint.objects.get(pk=number)
    except Checkpoint.DoesNotExist:
        raise Http404 from None


def push_to(address: str) -> CheckpointPush | None:
    """How far an outside repository has the checkpoints; None where nothing was ever sent there."""
    return CheckpointPush.objects.filter(address=address).first()


@contextlib.contextmanager
def snapshot() -> Iterator[None]:
    """What is read inside is one moment of the log: head and events belong together, whoever appends meanwhile."""
    if connection.in_atomic_block:  # the caller's transaction decides
        yield
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


# Events that an export holds in memory at once.
EXPORT_BATCH = 200


def events_up_to(seq: int) -> Iterator[list[tuple[Link, bool]]]:
    """The events from the first to this one in batches, each with whether it is a decision.

    No transaction is held while whoever reads takes their time: the log only grows, so whatever stands up to a head
    that was read before is one moment of it.
    """
    after = 0
    while batch := list(
        Event.objects.filter(seq__gt=after, seq__lte=seq)
        .order_by("seq")
        .values_list("seq", "body", "previous_hash", "hash", "is_decision")[:EXPORT_BATCH]
    ):
        yield [(Link(*row[:4]), row[4]) for row in batch]
        after = batch[-1][0]


def links() -> Iterator[Link]:
    """Every event in order, streamed."""
    rows = Event.objects.order_by("seq")
    for row in rows.values("seq", "body", "previous_hash", "hash", *COLUMNS).iterator(5_000):
        columns = {name: row[name] for name in COLUMNS} | {"at": stamp(row["at"])}
        yield Link(row["seq"], row["body"], row["previous_hash"], row["hash"], columns)
