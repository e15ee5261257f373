"""What is behind a repository's figures, row for row, and the same figures counted from such rows alone.

`counting.py` counts in SQL, for pages; `recount` counts rows that were kept elsewhere, when those of the hub may have
changed or gone. A test holds the two against each other.
"""

import datetime
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.db import connection

from apps.relay.counted import INFORMATIONAL
from apps.relay.policy import RED
from apps.results.counting import DISPATCH_COLUMNS, DISPATCH_ROWS, JOB_COLUMNS, JOB_ROWS
from apps.results.metrics import BUCKETS, ENDED, OVERRUN_SECONDS, Counted
from apps.results.services import parameters

# Of how a job is counted from its row. A change of what a figure means gets a number of its own.
FORMULAS = 1
_SECOND = 1_000_000
Row = dict[str, Any]


@dataclass(frozen=True)
class InputRows:
    """Jobs and dispatches of one repository and scope. Columns as counting.JOB_COLUMNS and DISPATCH_COLUMNS name them:
    days as ISO text, times in microseconds since 1970, yes and no as 1 and 0."""

    jobs: list[Row]
    dispatches: list[Row]


def input_rows(
    *, repository_id: int, scope: str, first: datetime.date, last: datetime.date, now: datetime.datetime
) -> InputRows:
    """The rows behind the figures of these UTC days, as they count now. Two queries."""
    days = [(repository_id, first + datetime.timedelta(days=place)) for place in range((last - first).days + 1)]
    values = parameters(days, now=now) | {"scope": scope}
    with connection.cursor() as cursor:
        cursor.execute(JOB_ROWS, values)
        jobs = [dict(zip(JOB_COLUMNS, row, strict=True)) for row in cursor.fetchall()]
        cursor.execute(DISPATCH_ROWS, values)
        dispatches = [dict(zip(DISPATCH_COLUMNS, row, strict=True)) for row in cursor.fetchall()]
    return InputRows(jobs, dispatches)


def recount(rows: InputRows, *, first: datetime.date, last: datetime.date) -> dict[datetime.date, Counted]:
    """The counts of each day that has any, from rows alone: pure. What upstream's own formulas read is left out."""
    by_day: dict[str, list[Row]] = defaultdict(list)
    asked: dict[str, list[Row]] = defaultdict(list)
    for job in rows.jobs:
        by_day[job["day"]].append(job)
    for dispatch in rows.dispatches:
        asked[dispatch["day"]].append(dispatch)
    runs: dict[str, list[int]] = defaultdict(list)
    for day, seconds in _runs(rows.jobs):
        runs[day].append(seconds)
    days = sorted(day for day in {*by_day, *asked} if first.isoformat() <= day <= last.isoformat())
    return {
        datetime.date.fromisoformat(day): _day(by_day.get(day, []), asked.get(day, []), sorted(runs.get(day, [])))
        for day in days
    }


def _day(jobs: list[Row], dispatches: list[Row], runs: list[int]) -> Counted:
    return replace(
        count_jobs(jobs),
        sent=len(dispatches),
        answered=sum(1 for dispatch in dispatches if dispatch["answered"]),
        undecided=sum(1 for dispatch in dispatches if not dispatch["answered"] and dispatch["open"]),
        runs=tuple(runs),
    )


def count_jobs(jobs: list[Row]) -> Counted:
    """What rows of jobs count for by themselves: neither runs nor dispatches."""
    current = [job for job in jobs if not job["superseded"] and not job["by_push"]]
    heard = [job for job in current if not job["unheard"]]
    buckets = dict.fromkeys(BUCKETS, 0)
    for job in heard:
        if job["bucket"] in (*ENDED, "in_progress", INFORMATIONAL):
            buckets[job["bucket"]] += 1
    buckets["superseded"] = len(jobs) - len(current)
    buckets["unheard"] = len(current) - len(heard)
    rated = [job for job in jobs if job["bucket"] != INFORMATIONAL]
    firsts = [job for job in rated if job["attempt"] == 1 and not job["by_push"] and not job["unheard"]]
    timed = [
        job["completed_us"] - job["start_us"]
        for job in current
        if job["bucket"] != INFORMATIONAL
        and job["said"] != "timed_out"
        and job["completed_us"] is not None
        and job["start_us"] is not None
    ]
    red = [
        job
        for job in jobs
        if job["said"] in RED and job["bucket"] not in ("success", INFORMATIONAL) and not job["unheard"]
    ]
    waited = sorted(max(0, job["acknowledged_us"] - job["ended_us"]) for job in red if job["acknowledged_us"])
    queued = [job["queue_us"] for job in jobs if job["queue_us"] is not None]
    return Counted(
        buckets=buckets,
        superseded_by_push=sum(1 for job in jobs if job["by_push"] and not job["superseded"]),
        as_declared=sum(1 for job in heard if job["bucket"] == "success" and job["said"] != "success"),
        listed_apart=sum(1 for job in heard if job["bucket"] == "failure" and job["red_apart"]),
        first_ended=sum(1 for job in firsts if job["status"] == "completed"),
        first_success=sum(1 for job in firsts if job["bucket"] == "success"),
        timed=len(timed),
        overrun=sum(1 for microseconds in timed if microseconds > OVERRUN_SECONDS * _SECOND),
        queued=len(queued),
        queue_seconds=_seconds(sum(queued)),
        red=len(red),
        acknowledged=tuple(map(_seconds, waited)),
    )


def _runs(jobs: Iterable[Row]) -> Iterator[tuple[str, int]]:
    """Each run with a known end: the day of its first job, and its seconds."""
    of_run: dict[str, list[Row]] = defaultdict(list)
    for job in jobs:
        if job["attempt"] == 1:
            of_run[job["run"]].append(job)
    for run in of_run.values():
        ends, starts = [job["completed_us"] for job in run], [job["start_us"] for job in run]
        is_known = None not in ends and any(start is not None for start in starts)
        if not is_known or any(job["by_push"] or job["late"] for job in run):
            continue
        began = min(job["first_seen_us"] if job["start_us"] is None else job["start_us"] for job in run)
        waited = max((job["queue_us"] for job in run if job["queue_us"] is not None), default=0)
        yield min(job["day"] for job in run), _seconds(waited + max(ends) - began)


def _seconds(microseconds: int) -> int:
    """Rounded as PostgreSQL rounds an exact number."""
    return int((Decimal(microseconds) / _SECOND).quantize(Decimal(1), ROUND_HALF_UP))
