"""What the outboxes of check runs and re-runs share: take a row, write how its attempt ended, sweep."""

import datetime
from typing import Any, TypeVar

from django.db import transaction

from apps.checks.enums import SendState
from apps.checks.models import Outgoing
from apps.core import clock, outbox
from apps.core.backoff import ATTEMPTS_MAX
from apps.core.wakeups import wake

SWEPT_AT_ONCE = 10_000

Row = TypeVar("Row", bound=Outgoing)


def take(model: type[Row], pk: int, *, now: datetime.datetime) -> Row | None:
    """Claim a row whose time has come; None when it is not there to be claimed."""
    due = model._default_manager.filter(pk=pk, next_attempt_at__lte=clock.real(now))
    return model._default_manager.get(pk=pk) if outbox.begin(due, now=now, **model.CARRIED) else None


def finish(row: Outgoing, *, now: datetime.datetime, error: str = "", **values: Any) -> bool:
    """Write how the attempt that `take` began has ended. False when the row was taken back meanwhile."""
    mine = type(row)._default_manager.filter(pk=row.pk)
    return outbox.finish(mine, attempt=row.attempts, error=error, now=now, **values)


def after_failure(row: Outgoing, *, asked: float, now: datetime.datetime) -> dict[str, Any]:
    """What a request that GitHub did not take leaves behind: the next attempt, or none."""
    due_at = outbox.next_attempt_at(row.attempts, now=now, asked=asked)
    if due_at is None:
        return {"state": SendState.GIVEN_UP}
    return {"state": SendState.PENDING, "next_attempt_at": due_at}


@transaction.atomic
def sweep(model: type[Outgoing], topic: str, *, now: datetime.datetime) -> int:
    """Take back what lost its worker, wake what is due. Returns how many were woken.

    Given up is what was tried often enough; what a row has come to say meanwhile was never tried, and begins anew.
    """
    died = outbox.abandoned(model._default_manager.all(), now=now)
    died.filter(model.SAYS_NEWER).update(attempts=0, state=SendState.PENDING, error=outbox.LOST, next_attempt_at=now)
    died.filter(attempts__gte=ATTEMPTS_MAX).update(state=SendState.GIVEN_UP, error=outbox.LOST, changed_at=now)
    died.update(state=SendState.PENDING, error=outbox.LOST, next_attempt_at=now)
    due = model._default_manager.filter(state=SendState.PENDING, next_attempt_at__lte=now).order_by("next_attempt_at")
    keys = [str(pk) for pk in due.values_list("pk", flat=True)[:SWEPT_AT_ONCE]]
    wake(topic, keys, now=now)
    return len(keys)
