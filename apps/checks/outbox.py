"""What both outboxes share: take a row, write how its attempt ended, take back what lost its worker.

Every step is a compare-and-set on (state, attempts), so a worker that was believed lost overwrites nothing.
"""

import datetime
import random
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import F

from apps.checks.enums import SendState
from apps.checks.models import Outgoing
from apps.core import clock
from apps.core.backoff import ATTEMPTS_MAX, backoff_seconds
from apps.core.text import storable
from apps.core.wakeups import wake

# A request is bounded by the client's timeout, and a row takes three at most; what is older has lost its worker.
SENDING_LOST_SECONDS = 120
SWEPT_AT_ONCE = 10_000
# Of GitHub's words, or a downstream's, a row keeps so many characters.
WORDS_MAX = 500
LOST = "the worker was lost while sending"

Row = TypeVar("Row", bound=Outgoing)


def take(model: type[Row], pk: int, *, now: datetime.datetime) -> Row | None:
    """Claim a row whose time has come; None when it is not there to be claimed."""
    moment = clock.real(now)
    taken = model._default_manager.filter(pk=pk, state=SendState.PENDING, next_attempt_at__lte=moment).update(
        state=SendState.SENDING, attempts=F("attempts") + 1, changed_at=moment
    )
    return model._default_manager.get(pk=pk) if taken == 1 else None


def finish(row: Outgoing, *, now: datetime.datetime, error: str = "", **values: Any) -> bool:
    """Write how the attempt that `take` began has ended. False when the row was taken back meanwhile."""
    mine = type(row)._default_manager.filter(pk=row.pk, state=SendState.SENDING, attempts=row.attempts)
    return mine.update(error=storable(error, WORDS_MAX), changed_at=clock.real(now), **values) == 1


def after_failure(row: Outgoing, *, asked: float, now: datetime.datetime) -> dict[str, Any]:
    """What a request that GitHub did not take leaves behind: the next attempt, or none."""
    wait = backoff_seconds(row.attempts, random.random(), asked=asked)  # noqa: S311  spreads load, keeps no secret
    if wait is None:
        return {"state": SendState.GIVEN_UP}
    return {
        "state": SendState.PENDING,
        "next_attempt_at": clock.real(now) + datetime.timedelta(seconds=wait),
    }


@transaction.atomic
def sweep(model: type[Outgoing], topic: str, *, now: datetime.datetime) -> int:
    """Take back what lost its worker, wake what is due. Returns how many were woken."""
    died = model._default_manager.filter(
        state=SendState.SENDING, changed_at__lt=now - datetime.timedelta(seconds=SENDING_LOST_SECONDS)
    )
    died.filter(attempts__gte=ATTEMPTS_MAX).update(state=SendState.GIVEN_UP, error=LOST, changed_at=now)
    died.update(state=SendState.PENDING, error=LOST, next_attempt_at=now)
    due = model._default_manager.filter(state=SendState.PENDING, next_attempt_at__lte=now).order_by("next_attempt_at")
    keys = [str(pk) for pk in due.values_list("pk", flat=True)[:SWEPT_AT_ONCE]]
    wake(topic, keys, now=now)
    return len(keys)
