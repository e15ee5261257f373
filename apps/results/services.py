"""Verbs on rollups."""

import datetime
from collections.abc import Iterable
from typing import Any

from django.db import connection, transaction

from apps.results.counting import COUNT, LOCK
from apps.results.metrics import OVERRUN_SECONDS

RepositoryDay = tuple[int, datetime.date]

_MIDNIGHT = datetime.time(tzinfo=datetime.UTC)
# So many days at a time: their locks are held together.
_AT_ONCE = 100


@transaction.atomic
def count_days(days: Iterable[RepositoryDay], *, now: datetime.datetime) -> None:
    """Count UTC days of repositories (primary key, day) anew from their jobs; a day that lost its jobs loses its row.

    Idempotent; two counts of a day at once end as one, since each replaces it as a whole.
    """
    repositories, dates = zip(*set(days), strict=True)
    values: dict[str, Any] = {
        "repositories": list(repositories),
        "days": list(dates),
        "overrun": OVERRUN_SECONDS,
        "now": now,
    }
    with connection.cursor() as cursor:
        cursor.execute(LOCK, values)
        cursor.execute(COUNT, values)


def recount(*, days: int, now: datetime.datetime) -> int:
    """Count the last `days` UTC days of every repository that has jobs on them. Returns how many repository days."""
    start = datetime.datetime.combine(now.date() - datetime.timedelta(days=days - 1), _MIDNIGHT)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT repository_id, (first_seen_at AT TIME ZONE 'UTC')::date FROM relay_job "
            "WHERE first_seen_at >= %s ORDER BY 2 DESC, 1",
            [start],
        )
        touched: list[RepositoryDay] = cursor.fetchall()
    for first in range(0, len(touched), _AT_ONCE):
        count_days(touched[first : first + _AT_ONCE], now=now)
    return len(touched)
