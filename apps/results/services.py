"""Verbs on rollups."""

import datetime
from collections.abc import Collection, Iterable
from typing import Any

from django.db import connection, transaction

from apps.platforms.policy import PUBLIC_FROM
from apps.relay.policy import SILENT_LIMIT_SECONDS
from apps.results.counting import COUNT, LOCK, TOUCHED_DAYS
from apps.results.metrics import OVERRUN_SECONDS

RepositoryDay = tuple[int, datetime.date]

_MIDNIGHT = datetime.time(tzinfo=datetime.UTC)
# So many days at a time: their locks are held together.
_AT_ONCE = 100


@transaction.atomic
def count_days(days: Iterable[RepositoryDay], *, now: datetime.datetime) -> None:
    """Count UTC days of repositories (primary key, day) anew from their jobs and dispatches; with them the days on
    which these dispatches were sent, and the other days of these runs. A day that lost all of them loses its row.

    Idempotent; two counts of a day at once end as one, since each replaces it as a whole.
    """
    values = parameters(set(days), now=now)
    with connection.cursor() as cursor:
        cursor.execute(TOUCHED_DAYS, values)
        values |= _columns(cursor.fetchall())
        cursor.execute(LOCK, values)
        cursor.execute(COUNT, values)


def parameters(days: Collection[RepositoryDay], *, now: datetime.datetime) -> dict[str, Any]:
    """What every statement of counting.py reads."""
    silent_limit = datetime.timedelta(seconds=SILENT_LIMIT_SECONDS)
    return _columns(days) | {
        "overrun": OVERRUN_SECONDS,
        "silent_limit": silent_limit,
        "silent_since": now - silent_limit,
        "public_from": PUBLIC_FROM,
        "now": now,
    }


def _columns(days: Collection[RepositoryDay]) -> dict[str, Any]:
    repositories, dates = zip(*days, strict=True)
    return {"repositories": list(repositories), "days": list(dates)}


def recount(*, days: int, now: datetime.datetime) -> int:
    """Count the last `days` UTC days of every repository that has jobs or dispatches on them. Returns how many."""
    start = datetime.datetime.combine(now.date() - datetime.timedelta(days=days - 1), _MIDNIGHT)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT repository_id, (first_seen_at AT TIME ZONE 'UTC')::date FROM relay_job "
            "WHERE first_seen_at >= %(start)s UNION "
            "SELECT DISTINCT repository_id, (sent_at AT TIME ZONE 'UTC')::date FROM relay_dispatch "
            "WHERE state = 'sent' AND sent_at >= %(start)s ORDER BY 2 DESC, 1",
            {"start": start},
        )
        touched: list[RepositoryDay] = cursor.fetchall()
    for first in range(0, len(touched), _AT_ONCE):
        count_days(touched[first : first + _AT_ONCE], now=now)
    return len(touched)
