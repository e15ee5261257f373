"""Reads of rollups."""

import datetime
import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from django.contrib.postgres.aggregates import StringAgg
from django.db.models import Func, Max, Q, QuerySet, Sum, TextField, Value

from apps.platforms.models import Platform, Repository
from apps.results.metrics import BUCKETS, COUNTS, UPSTREAM_COUNTS, Counted, Figure, figures, pass_rate, tone_of_rate
from apps.results.models import DayFigures
from apps.results.sheet import Row, rows_of


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

    `strip` goes back further than the figures do, day by day; a day without jobs has no data. Of `today` there are the
    buckets only.
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

    @functools.cached_property
    def sheet(self) -> list[Row]:
        """Every metric with upstream's value beside it."""
        return rows_of(self.counted)


_SUMS = (*COUNTS, *UPSTREAM_COUNTS, *BUCKETS)
_PLATFORM, _REPOSITORY = "repository__platform", "repository"


def platform_windows(
    *, scope: str, today: datetime.date, days: int, strip_days: int, platform: Platform | None = None
) -> dict[int, Window]:
    """By platform (primary key), the window that ends today; of one platform where it is given. A platform without
    jobs in the strip is left out, and so are probes. Two queries: PostgreSQL adds up, because an overview stands on
    thousands of rows."""
    rows = _rows_of(scope, today, strip_days)
    if platform is not None:
        rows = rows.filter(repository__platform=platform)
    return _windows(rows, _PLATFORM, today=today, days=days, strip_days=strip_days)


def repository_window(repository: Repository, *, scope: str, today: datetime.date, days: int) -> Window:
    """One repository's window that ends today; an empty one without jobs, and of a probe. Two queries."""
    rows = _rows_of(scope, today, days).filter(repository=repository)
    return _windows(rows, _REPOSITORY, today=today, days=days, strip_days=days).get(repository.pk, Window(days))


def _rows_of(scope: str, today: datetime.date, days: int) -> QuerySet[DayFigures]:
    first = today - datetime.timedelta(days=days - 1)
    return DayFigures.objects.filter(repository__is_probe=False, scope=scope, day__gte=first, day__lte=today)


def _windows(
    rows: QuerySet[DayFigures], whose: str, *, today: datetime.date, days: int, strip_days: int
) -> dict[int, Window]:
    strips: dict[int, dict[datetime.date, Counted]] = defaultdict(dict)
    for pk, day, *numbers in rows.values_list(whose, "day").annotate(*map(Sum, BUCKETS)):
        strips[pk][day] = Counted(buckets=dict(zip(BUCKETS, numbers, strict=True)))
    all_days = [today - datetime.timedelta(days=back) for back in range(strip_days - 1, -1, -1)]
    return {
        pk: Window(
            days=days,
            counted=counted,
            strip=tuple(Day(day, pass_rate(strips[pk].get(day, _NOTHING))) for day in all_days),
            today=strips[pk].get(today, _NOTHING),
            last_callback_at=last_callback_at,
            counted_at=counted_at,
        )
        for pk, counted, last_callback_at, counted_at in _totals(rows, whose, first=all_days[-days])
    }


def _totals(
    rows: QuerySet[DayFigures], whose: str, *, first: datetime.date
) -> Iterator[tuple[int, Counted, datetime.datetime | None, datetime.datetime]]:
    """Each one's counts from `first` on, and over all rows its last callback and when it was last counted."""
    recent = Q(day__gte=first)
    sums = {f"{name}_sum": Sum(name, filter=recent, default=0) for name in _SUMS}
    found = rows.values_list(whose).annotate(
        Max("last_callback_at"),
        Max("counted_at"),
        seconds=_all_of("runs", recent),
        acknowledge_seconds=_all_of("acknowledged", recent),
        upstream_seconds=_all_of("upstream_runs", recent),
        **sums,
    )
    for pk, last_callback_at, counted_at, seconds, acknowledge_seconds, upstream_seconds, *numbers in found:
        sum_of = dict(zip(_SUMS, numbers, strict=True))
        counted = Counted(
            buckets={bucket: sum_of.pop(bucket) for bucket in BUCKETS},
            runs=_numbers(seconds),
            acknowledged=_numbers(acknowledge_seconds),
            upstream_runs=_numbers(upstream_seconds),
            **sum_of,
        )
        yield pk, counted, last_callback_at, counted_at


def _all_of(column: str, where: Q) -> StringAgg:
    """All numbers of an array column, as one text: arrays of several lengths do not aggregate, and text is read faster
    than arrays are."""
    written = Func(column, Value(","), function="array_to_string", output_field=TextField())
    return StringAgg(written, ",", filter=where & ~Q(**{column: []}), default=Value(""))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


_NOTHING = Counted()


def day_counts(
    *, scope: str, first: datetime.date, last: datetime.date, repository_ids: Iterable[int] | None = None
) -> dict[int, dict[datetime.date, Counted]]:
    """By repository (primary key), the counts of each of these UTC days that has any. One query."""
    rows = DayFigures.objects.filter(scope=scope, day__gte=first, day__lte=last)
    if repository_ids is not None:
        rows = rows.filter(repository__in=list(repository_ids))
    counts: dict[int, dict[datetime.date, Counted]] = defaultdict(dict)
    columns = ("repository_id", "day", "runs", "acknowledged", "upstream_runs", *_SUMS)
    for pk, day, runs, acknowledged, upstream_runs, *numbers in rows.values_list(*columns).iterator(5_000):
        sum_of = dict(zip(_SUMS, numbers, strict=True))
        counts[pk][day] = Counted(
            buckets={bucket: sum_of.pop(bucket) for bucket in BUCKETS},
            runs=tuple(runs),
            acknowledged=tuple(acknowledged),
            upstream_runs=tuple(upstream_runs),
            **sum_of,
        )
    return counts


def scopes_counted(*, first: datetime.date, repository_ids: Iterable[int]) -> dict[int, set[str]]:
    """By repository (primary key), the scopes of which it has any counts since then. One query."""
    found: dict[int, set[str]] = defaultdict(set)
    rows = DayFigures.objects.filter(day__gte=first, repository__in=list(repository_ids))
    for pk, scope in rows.values_list("repository_id", "scope").distinct():
        found[pk].add(scope)
    return found


def newest_count_at() -> datetime.datetime | None:
    """When anything was last counted: what every page of figures stands on."""
    return DayFigures.objects.aggregate(newest=Max("counted_at"))["newest"]
