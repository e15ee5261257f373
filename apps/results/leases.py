"""Who parses a report: one worker at a time, for as long as it says that it is alive.

A parse is taken by compare-and-set and held by a lease that its progress renews. A worker that dies says nothing any
more: its lease runs out, the sweep wakes the report, another takes it. What a lease's holder writes asks for the lease.
"""

import datetime
import uuid
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, Q, QuerySet

from apps.core import clock
from apps.core.text import storable
from apps.core.wakeups import wake
from apps.results.enums import ReportState
from apps.results.models import Report
from apps.results.topics import REPORT_RECEIVED

LEASE = datetime.timedelta(seconds=60)
# A report that has waited for so long has lost its task.
TASK_LOST = datetime.timedelta(minutes=5)
# So many workers may die over one report, or fail at it: then the report is to blame.
ATTEMPTS_MAX = 3
WOKEN_AT_ONCE = 200
FAILURE_MAX = 500
DIED = (
    f"The hub's worker ended {ATTEMPTS_MAX} times before it had read the report, most likely for want of memory. "
    "Upload it in more shards."
)


@dataclass(frozen=True)
class Lease:
    """A parse that is this worker's. `revision`: the uploads that it is to see."""

    report_pk: int
    token: uuid.UUID
    revision: int


class Lost(Exception):
    """The lease ran out and another worker has the report, or it was taken down: nothing of this parse is written."""


def take(*, report_pk: int, now: datetime.datetime) -> Lease | None:
    """Take a report that waits to be parsed; None where there is nothing to do, or another worker is at it.

    A report at which ATTEMPTS_MAX workers have died is not taken: it has failed.
    """
    moment, token = clock.real(now), uuid.uuid4()
    free = _unparsed().filter(Q(lease_until=None) | Q(lease_until__lt=moment), pk=report_pk)
    if free.filter(attempts__gte=ATTEMPTS_MAX).update(**_failed(DIED, now)):
        return None
    taken = free.update(
        state=ReportState.PARSING,
        lease=token,
        lease_until=moment + LEASE,
        attempts=F("attempts") + 1,
        progress=0,
        changed_at=now,
    )
    if taken != 1:
        return None
    revision = Report.objects.filter(pk=report_pk, lease=token).values_list("wanted", flat=True).first()
    return None if revision is None else Lease(report_pk, token, revision)


def renew(lease: Lease, *, progress: int, now: datetime.datetime) -> None:
    """Say that the worker is alive, and how far it is (0 to 100). Raises Lost."""
    until = clock.real(now) + LEASE
    if held(lease).update(lease_until=until, progress=progress, changed_at=now) != 1:
        raise Lost


def held(lease: Lease) -> QuerySet[Report]:
    """The report, as long as the lease is this worker's."""
    return Report.objects.filter(pk=lease.report_pk, lease=lease.token, state=ReportState.PARSING)


@transaction.atomic
def give_back(lease: Lease, *, why: str, now: datetime.datetime) -> None:
    """The parse failed by a fault of the hub's: it is tried again, or, after ATTEMPTS_MAX times, has failed as `why`
    says. Who has lost the lease changes nothing."""
    spent = held(lease).filter(attempts__gte=ATTEMPTS_MAX).update(**_failed(storable(why, FAILURE_MAX), now))
    waits = {"state": ReportState.RECEIVED, "lease": None, "lease_until": None, "progress": 0}
    if not spent and held(lease).update(changed_at=now, woken_at=clock.real(now), **waits):
        wake(REPORT_RECEIVED, [str(lease.report_pk)], now=now)


def fail(lease: Lease, *, why: str, now: datetime.datetime) -> None:
    """The upload is to blame: it is not tried again before something else is uploaded. Raises Lost."""
    if held(lease).update(**_failed(storable(why, FAILURE_MAX), now)) != 1:
        raise Lost


@transaction.atomic
def sweep(*, now: datetime.datetime) -> int:
    """Wake reports whose worker has died or whose task was lost. Returns how many."""
    moment = clock.real(now)
    is_lost = Q(state=ReportState.PARSING, lease_until__lt=moment) | Q(state=ReportState.RECEIVED) & (
        Q(woken_at=None) | Q(woken_at__lt=moment - TASK_LOST)
    )
    # An upload wakes its report itself: only what has waited for a while is looked at.
    waiting = _unparsed().filter(is_lost, Q(state=ReportState.PARSING) | Q(changed_at__lt=moment - TASK_LOST))
    keys = list(waiting.order_by("changed_at").values_list("pk", flat=True)[:WOKEN_AT_ONCE])
    Report.objects.filter(pk__in=keys).update(woken_at=moment)
    wake(REPORT_RECEIVED, [str(key) for key in keys], now=now)
    return len(keys)


def _unparsed() -> QuerySet[Report]:
    waiting = [ReportState.RECEIVED, ReportState.PARSING, ReportState.READY]
    return Report.objects.filter(revision__lt=F("wanted"), state__in=waiting)


def _failed(why: str, now: datetime.datetime) -> dict[str, object]:
    ended = {"state": ReportState.FAILED, "lease": None, "lease_until": None, "parsed_at": now, "changed_at": now}
    return ended | {"failure": why}
