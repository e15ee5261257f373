"""Reads of appeals: all are public, as what they contest is."""

import datetime
import uuid
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.http import Http404

from apps.appeals.enums import State
from apps.appeals.models import Appeal, AppealedRow


def appeals() -> QuerySet[Appeal]:
    """Every appeal with whose it is, the newest first; `row_count` of each."""
    return Appeal.objects.select_related("platform", "repository").annotate(row_count=Count("rows"))


def appeals_found(filters: dict[str, Any], *, now: datetime.datetime) -> QuerySet[Appeal]:
    """Those that fit: `platform` (slug), `state` (as people read it at `now`), `overdue`."""
    found = appeals()
    if slug := filters.get("platform"):
        found = found.filter(platform__slug=slug)
    if state := filters.get("state"):
        found = found.filter(_in_state(state, now))
    return found.filter(state=State.OPEN, deadline_at__lte=now) if filters.get("overdue") else found


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
