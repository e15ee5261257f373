"""Rollups as the counts that they hold."""

import dataclasses
from typing import Any

from apps.results.metrics import ANSWERS, BUCKETS, COUNTS, UPSTREAM_COUNTS, Counted
from apps.results.models import DayFigures


def counted(row: DayFigures) -> Counted:
    return Counted(
        buckets={bucket: getattr(row, bucket) for bucket in BUCKETS},
        **{name: getattr(row, name) for name in (*COUNTS, *UPSTREAM_COUNTS)},
        runs=tuple(row.runs),
        acknowledged=tuple(row.acknowledged),
        upstream_runs=tuple(row.upstream_runs),
    )


def of_jobs(whole: Counted) -> Counted:
    """Without dispatches and upstream's formulas: what the hub counts of jobs."""
    nothing: dict[str, Any] = dict.fromkeys((*ANSWERS, *UPSTREAM_COUNTS), 0)
    return dataclasses.replace(whole, upstream_runs=(), **nothing)


def of_rows(whole: Counted) -> Counted:
    """Without upstream's formulas: what is counted from rows that were kept."""
    nothing: dict[str, Any] = dict.fromkeys(UPSTREAM_COUNTS, 0)
    return dataclasses.replace(whole, upstream_runs=(), **nothing)
