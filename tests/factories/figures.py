"""Rollups as the counts that they hold."""

from apps.results.metrics import BUCKETS, COUNTS, Counted
from apps.results.models import DayFigures


def counted(row: DayFigures) -> Counted:
    return Counted(
        buckets={bucket: getattr(row, bucket) for bucket in BUCKETS},
        **{name: getattr(row, name) for name in COUNTS},
        runs=tuple(row.runs),
    )
