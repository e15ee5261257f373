"""Reads of appeals: all are public, as what they contest is."""

import datetime
import uuid
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.http import Http404
from django.urls import reverse

from apps.appeals.contested import CONTESTABLE
from apps.appeals.enums import State
from apps.appeals.models import Appeal, AppealedRow
from apps.appeals.policy import state_at
from apps.audit.models import Event
from apps.audit.notes import Note
from apps.core import clock
from apps.policies.selectors import policy_at


def appeals() -> QuerySet[Appeal]:
    """Every appeal with whose it is, the newest first; `row_count` of each."""
    found = Appeal.objects.select_related("platform", "repository").annotate(row_count=Count("rows"))
    return found.order_by("-opened_at", "-pk")


def appeals_found(filters: dict[str, Any], *, now: datetime.datetime) -> QuerySet[Appeal]:
    """Those that fit: `platform` (slug), `state` (as people read it at `now`), `overdue`."""
    found = appeals()
    if slug := filters.get("platform"):
        found = found.filter(platform__slug=slug)
    if state := filters.get("state"):
        found = found.filter(_in_state(state, now))
    return found.filter(state=State.OPEN, deadline_at__lte=now) if filters.get("overdue") else found


def undecided() -> QuerySet[Appeal]:
    """Those that wait for a decision, the nearest deadline first."""
    return appeals().filter(state=State.OPEN).order_by("deadline_at", "pk")


def _in_state(state: str, now: datetime.datetime) -> Q:
    if state == State.PAUSED:
        return Q(state=State.OPEN, paused_until__gt=now)
    if state == State.OPEN:
        return Q(state=State.OPEN) & (Q(paused_until=None) | Q(paused_until__lte=now))
    return Q(state=state)


def appeal_or_404(public_id: uuid.UUID) -> Appeal:
    try:
        return appeals().get(public_id=public_id)
    except Appeal.DoesNotExist:
        raise Http404 from None


def rows_of(appeal: Appeal) -> QuerySet[AppealedRow]:
    """Its rows with their jobs, the oldest first."""
    return appeal.rows.select_related("job__repository").order_by("pk")


def notes_of_decision(event: Event) -> list[Note]:
    """Whether a decision is contested, or until when it can be: told on its page. Two queries at most, none of an
    action that no appeal takes."""
    if event.action not in CONTESTABLE:
        return []
    moment = clock.now()
    made = Appeal.objects.filter(decision_seq=event.seq).exclude(state=State.WITHDRAWN).first()
    if made is not None:
        state = state_at(made.state, made.paused_until, moment)
        where = reverse("appeals:appeal", args=[made.public_id])
        return [Note(state.value, f"contested: {state.label}", where, "the appeal")]
    until = event.at + datetime.timedelta(days=policy_at(moment).limits["appeal_days"])
    if until < moment:
        return []
    words = f"its platform's members may appeal it until {until:%Y-%m-%d}"
    return [Note("kept", words, f"{reverse('appeals:new')}?decision={event.seq}", "appeal it")]
