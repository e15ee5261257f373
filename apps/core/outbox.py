"""The steps that every outbox shares: an attempt begins, ends, or has lost its worker.

A row has `state`, `attempts`, `changed_at`, `error`. Each step is a compare-and-set on state and attempts, so a worker
that was believed lost overwrites nothing. What differs stays with each outbox: whose turn it is, when a row is due, and
what is left where it is over.
"""

import datetime
import random
from typing import Any

from django.db.models import F, QuerySet

from apps.core import clock
from apps.core.backoff import backoff_seconds
from apps.core.text import storable

# These two words are in the states of every outbox.
PENDING, SENDING = "pending", "sending"
# A request is bounded by its timeout, and an attempt takes few; what is older has lost its worker.
SENDING_LOST_SECONDS = 120
# Of the words of whoever did not take it a row keeps so many characters.
WORDS_MAX = 500
LOST = "the worker was lost while sending"


def begin(row: QuerySet[Any], *, now: datetime.datetime, **values: Any) -> bool:
    """Take a pending row for an attempt. False where it is not there to be taken."""
    begun = {"state": SENDING, "attempts": F("attempts") + 1, "changed_at": clock.real(now)}
    return row.filter(state=PENDING).update(**begun, **values) == 1


def finish(row: QuerySet[Any], *, attempt: int, error: str, now: datetime.datetime, **values: Any) -> bool:
    """Write how an attempt has ended. False where the row was taken back meanwhile."""
    mine = row.filter(state=SENDING, attempts=attempt)
    return mine.update(error=storable(error, WORDS_MAX), changed_at=clock.real(now), **values) == 1


def next_attempt_at(attempts: int, *, now: datetime.datetime, asked: float = 0.0) -> datetime.datetime | None:
    """When what failed so many times is due again (core/backoff.py), `asked` seconds from now at least; None: it is
    given up."""
    wait = backoff_seconds(attempts, random.random(), asked=asked)  # noqa: S311  spreads load, keeps no secret
    return None if wait is None else clock.real(now) + datetime.timedelta(seconds=wait)


def abandoned(
    rows: QuerySet[Any], *, now: datetime.datetime, after_seconds: float = SENDING_LOST_SECONDS
) -> QuerySet[Any]:
    """Those whose attempt began so long ago that its worker is taken as lost."""
    return rows.filter(state=SENDING, changed_at__lt=now - datetime.timedelta(seconds=after_seconds))
