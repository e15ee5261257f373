"""Reads of rollups."""

import datetime
import functools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Max

from apps.platforms.models import Platform
from apps.results.metrics import BUCKETS, COUNTS, Counted, Figure, add, figures, pass_rate, tone_of_rate
from apps.results.models import DayFigures


@dataclass(frozen=True)
class Day:
    """One day's cell: its pass rate with the rows behind it."""

    day: datetime.date
    rate: Figure

    @property
    def tone(self) -> str:
        return tone_of_rate(self.rate.value)


@dataclass(frozen=True)
class Window:
    """One repository's (or platform's) jobs of a scope over the last `days` days, today included, in UTC.

    `strip` goes back further than the figures do, day by day; a day without jobs has no data.
    """

    days: int
    counted: Counted = field(default_factory=Counted)
    strip: tuple[Day, ...] = ()
    today: Counted = field(default_factory=Counted)
    last_callback_at: datetime.datetime | None = None
    counted_at: datetime.datetime | None = None

    @functools.cached_property
    def figures(self) -> dict[str, Figure]:
        return figures(self.counted)


# What a row of DayFigures is read as: plain tuples, because an overview reads thousands of them.
_FIELDS = ("repository__platform", "day", "last_callback_at", "counted_at", "runs", *COUNTS, *BUCKETS)


def platform_windows(
    *, scope: str, today: datetime.date, days: int, strip_days: int, platform: Platform | None = None
) -> dict[int, Window]:
    """By platform (primary key), the window that ends today; of one platform where it is given. A platform without
    jobs in the strip is left out, and so are probes. One query."""
    rows = DayFigures.objects.filter(
        repository__is_probe=False, scope=scope, day__gt=today - datetime.timedelta(days=strip_days), day__lte=today
    )
    if platform is not None:
        rows = rows.filter(repository__platform=platform)
    by_platform: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for pk, *row in rows.values_list(*_FIELDS):
        by_platform[pk].append(tuple(row))
    return {pk: _window(found, today, days, strip_days) for pk, found in by_platform.items()}


def _window(rows: list[tuple[Any, ...]], today: datetime.date, days: int, strip_days: int) -> Window:
    by_day: dict[datetime.date, list[Counted]] = defaultdict(list)
    for day, _, _, runs, *numbers in rows:
        sums = dict(zip(COUNTS, numbers, strict=False))
        buckets = dict(zip(BUCKETS, numbers[len(COUNTS) :], strict=True))
        by_day[day].append(Counted(buckets=buckets, runs=tuple(runs), **sums))
    counted = {day: parts[0] if len(parts) == 1 else add(parts) for day, parts in by_day.items()}
    first = today - datetime.timedelta(days=days - 1)
    all_days = (today - datetime.timedelta(days=back) for back in range(strip_days - 1, -1, -1))
    return Window(
        days=days,
        counted=add(part for day, part in counted.items() if day >= first),
        strip=tuple(Day(day, pass_rate(counted.get(day, _NOTHING))) for day in all_days),
        today=counted.get(today, _NOTHING),
        last_callback_at=max(row[1] for row in rows),
        counted_at=max(row[2] for row in rows),
    )


_NOTHING = Counted()


def newest_count_at() -> datetime.datetime | None:
    """When anything was last counted: what every page of figures stands on."""
    return DayFigures.objects.aggregate(newest=Max("counted_at"))["newest"]
