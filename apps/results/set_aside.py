"""Jobs of accepted appeals: what they count for, and the figures without them.

Criteria read the raw counts less these; the raw ones stay as they are everywhere. Figures of jobs change, those of runs
(end to end) and of dispatches (answers) do not: a job alone does not undo a run or an answer.
"""

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from apps.platforms.models import Repository
from apps.relay.models import Job
from apps.results.counting import JOB_COLUMNS, SET_ASIDE_ROWS
from apps.results.input_rows import InputRows, count_jobs, recount
from apps.results.metrics import BUCKETS, COUNTS, PULL_REQUESTS, Counted, add
from apps.results.models import SetAside
from apps.results.selectors import day_counts
from apps.results.services import RepositoryDay, parameters
from apps.results.sheet import Row as SheetRow
from apps.results.sheet import rows_of as sheet_rows

# The figures that a job set aside can change.
OF_JOBS = ("pass_rate", "first_attempt_pass_rate", "timeout_rate", "overrun_rate", "avg_queue_seconds")
_DAY = datetime.timedelta(days=1)
_MIDNIGHT = datetime.time(tzinfo=datetime.UTC)
DayCounts = dict[datetime.date, Counted]


def set_aside(
    *, jobs: Iterable[Job], why: str, source_id: str, url: str, event_seq: int, now: datetime.datetime
) -> None:
    """Leave these jobs out of what criteria read, from now on. To be called in the transaction of the decision."""
    SetAside.objects.bulk_create(
        [SetAside(job=job, why=why, source_id=source_id, url=url, event_seq=event_seq, since=now) for job in jobs]
    )


def rows_of(repositories: Iterable[Repository], *, first: datetime.date, scope: str) -> QuerySet[SetAside]:
    """What stands aside of these repositories' jobs of a scope since a UTC day, with the jobs, the newest first."""
    start = datetime.datetime.combine(first, _MIDNIGHT)
    found = SetAside.objects.filter(
        job__repository__in=list(repositories), job__first_seen_at__gte=start, job__event_type=scope
    )
    return found.select_related("job__repository")


def aside_counts(
    *, scope: str, first: datetime.date, repository_ids: Iterable[int], now: datetime.datetime
) -> dict[int, DayCounts]:
    """By repository (primary key) and UTC day, what the jobs set aside by now count for. One query where there are
    none, else two."""
    start = datetime.datetime.combine(first, _MIDNIGHT)
    aside = SetAside.objects.filter(
        job__repository__in=list(repository_ids), job__first_seen_at__gte=start, since__lte=now
    )
    seen = aside.values_list("job__repository_id", "job__first_seen_at")
    days: set[RepositoryDay] = {(pk, at.astimezone(datetime.UTC).date()) for pk, at in seen}
    if not days:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(SET_ASIDE_ROWS, parameters(days, now=now) | {"scope": scope})
        rows = cursor.fetchall()
    jobs: dict[tuple[int, str], list[dict[str, Any]]] = defaultdict(list)
    for pk, *columns in rows:
        job = dict(zip(JOB_COLUMNS, columns, strict=True))
        jobs[pk, job["day"]].append(job)
    counts: dict[int, DayCounts] = defaultdict(dict)
    for (pk, day), of_day in jobs.items():
        counts[pk][datetime.date.fromisoformat(day)] = count_jobs(of_day)
    return counts


def less(counted: Counted, aside: Counted) -> Counted:
    """Counts without those of jobs set aside, pure. Runs, answers and what upstream reads stay."""
    return replace(
        counted,
        buckets={name: counted.buckets.get(name, 0) - aside.buckets.get(name, 0) for name in BUCKETS},
        **{name: getattr(counted, name) - getattr(aside, name) for name in COUNTS},
    )


def less_by_day(days: Mapping[datetime.date, Counted], aside: Mapping[datetime.date, Counted]) -> DayCounts:
    """The same for each day."""
    return {day: less(counted, aside[day]) if day in aside else counted for day, counted in days.items()}


def recount_less(rows: InputRows, *, first: datetime.date, last: datetime.date) -> DayCounts:
    """What criteria read of these days, from rows alone: pure, as input_rows.recount."""
    of_day: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for job in rows.jobs:
        if job["aside"]:
            of_day[job["day"]].append(job)
    aside = {datetime.date.fromisoformat(day): count_jobs(jobs) for day, jobs in of_day.items()}
    return less_by_day(recount(rows, first=first, last=last), aside)


@dataclass(frozen=True)
class Beside:
    """One figure as it is, and less the jobs of accepted appeals."""

    raw: SheetRow
    less: SheetRow


@dataclass(frozen=True)
class Aside:
    """What stands aside over a window of UTC days: the rows, and each figure both ways."""

    rows: tuple[SetAside, ...]
    figures: tuple[Beside, ...]


def aside_of(
    repositories: Iterable[Repository], *, days: int, now: datetime.datetime, scope: str = PULL_REQUESTS
) -> Aside | None:
    """The window of `days` UTC days that ends today, raw and less accepted appeals; None where nothing stands aside.
    One query then, else four."""
    today = now.astimezone(datetime.UTC).date()
    listed, first = list(repositories), today - (days - 1) * _DAY
    rows = tuple(rows_of(listed, first=first, scope=scope))
    if not rows:
        return None
    pks = [repository.pk for repository in listed]
    raw = _whole(day_counts(scope=scope, first=first, last=today, repository_ids=pks))
    aside = _whole(aside_counts(scope=scope, first=first, repository_ids=pks, now=now))
    both = zip(sheet_rows(raw), sheet_rows(less(raw, aside)), strict=True)
    return Aside(rows, tuple(Beside(*pair) for pair in both if pair[0].metric.key in OF_JOBS))


def _whole(counts: Mapping[int, DayCounts]) -> Counted:
    return add(counted for days in counts.values() for counted in days.values())
