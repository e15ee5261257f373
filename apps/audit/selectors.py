"""Reading the log."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import Http404

from apps.audit.chain import COLUMNS, Link, stamp
from apps.audit.models import Event, Head, LastVerification


def decisions(*, subject_kind: str = "", subject_ids: list[str] | None = None) -> QuerySet[Event]:
    """The public decisions, newest first; of one subject kind and some ids where given."""
    events = Event.objects.filter(is_decision=True)
    if subject_kind:
        events = events.filter(subject_kind=subject_kind, subject_id__in=subject_ids or [])
    return events


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


def links(*, up_to: int) -> Iterator[Link]:
    """Events 1 to `up_to` in order, streamed. What is appended meanwhile is not part of it."""
    rows = Event.objects.filter(seq__lte=up_to).order_by("seq")
    for row in rows.values("seq", "body", "previous_hash", "hash", *COLUMNS).iterator(5_000):
        columns = {name: row[name] for name in COLUMNS} | {"at": stamp(row["at"])}
        yield Link(row["seq"], row["body"], row["previous_hash"], row["hash"], columns)
