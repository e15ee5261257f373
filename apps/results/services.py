"""Verbs on rollups."""

import datetime
from collections.abc import Iterable

from django.db import connection, transaction

from apps.results.counting import DAY
from apps.results.metrics import OVERRUN_SECONDS
from apps.results.models import DayFigures

_MIDNIGHT = datetime.time(tzinfo=datetime.UTC)


def count_day(*, repository_id: int, day: datetime.date, now: datetime.datetime) -> int:
    """Count one repository's UTC day anew from its jobs. Returns how many scopes have jobs on it.

    Idempotent; two at once end as one, since each replaces the day as a whole.
    """
    start = datetime.datetime.combine(day, _MIDNIGHT)
    with transaction.atomic(), connection.cursor() as cursor:
        # One count of a day at a time: the later one reads what the earlier one has not seen.
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [repository_id % 2**31, day.toordinal()])
        cursor.execute(
            DAY,
            {
                "repository": repository_id,
                "start": start,
                "end": start + datetime.timedelta(days=1),
                "overrun": OVERRUN_SECONDS,
            },
        )
        names = [column.name for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        counted = [DayFigures(repository_id=repository_id, day=day, counted_at=now, **row) for row in rows]
        DayFigures.objects.filter(repository_id=repository_id, day=day).exclude(
            scope__in=[row["scope"] for row in rows]
        ).delete()
        DayFigures.objects.bulk_create(
            counted,
            update_conflicts=True,
            unique_fields=["repository", "scope", "day"],
            update_fields=[*(name for name in names if name != "scope"), "counted_at"],
        )
    return len(rows)


def count_days(keys: Iterable[str], *, now: datetime.datetime) -> int:
    """Count the days that wake-ups name, each `<repository pk>:<day>`. Returns how many."""
    days = [_parse(key) for key in keys]
    for repository_id, day in days:
        count_day(repository_id=repository_id, day=day, now=now)
    return len(days)


def recount(*, days: int, now: datetime.datetime) -> int:
    """Count the last `days` UTC days of every repository that has jobs on them. Returns how many repository days."""
    start = datetime.datetime.combine(now.date() - datetime.timedelta(days=days - 1), _MIDNIGHT)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT repository_id, (first_seen_at AT TIME ZONE 'UTC')::date FROM relay_job "
            "WHERE first_seen_at >= %s ORDER BY 2 DESC, 1",
            [start],
        )
        touched = cursor.fetchall()
    for repository_id, day in touched:
        count_day(repository_id=repository_id, day=day, now=now)
    return len(touched)


def _parse(key: str) -> tuple[int, datetime.date]:
    repository_id, _, day = key.partition(":")
    return int(repository_id), datetime.date.fromisoformat(day)
