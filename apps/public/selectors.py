"""What the public pages compose from several apps."""

import datetime
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from apps.audit.models import Event
from apps.core.templatetags.hub import STATUS, percent
from apps.platforms.models import Platform, Repository
from apps.platforms.policy import LEVELS, MATURE, PUBLIC_FROM, UNLISTED, Level
from apps.platforms.selectors import platforms_listed
from apps.platforms.tenure import held_since
from apps.relay import graph_selectors
from apps.relay.models import Commit, MergeBase
from apps.relay.policy import silent_hours
from apps.relay.selectors import last_callbacks
from apps.results.metrics import BUCKETS, PARTS, PULL_REQUESTS, Figure, add, figures, tone_of_rate
from apps.results.selectors import Window, platform_windows
from apps.results.sheet import Row

WINDOW_DAYS = 14
STRIP_DAYS = 30


@dataclass(frozen=True)
class OverviewRow:
    """One platform in the overview. `window` is empty when no job of it was seen; below L2 it is not shown."""

    platform: Platform
    repositories: list[Repository]
    window: Window

    @property
    def strip(self) -> list[tuple[datetime.date, str, str]]:
        return strip_of(self.window)

    @property
    def rate(self) -> Figure:
        return self.window.figures["pass_rate"]

    @property
    def tone(self) -> str:
        return tone_of_rate(self.rate.value)

    @property
    def is_public(self) -> bool:
        return any(repository.level >= PUBLIC_FROM for repository in self.repositories)


def overview_groups(now: datetime.datetime) -> list[tuple[Level, list[OverviewRow]]]:
    """Listed platforms by the highest level of their repositories, highest first; empty levels are left out."""
    windows = platform_windows(scope=PULL_REQUESTS, today=now.date(), days=WINDOW_DAYS, strip_days=STRIP_DAYS)
    groups: dict[int, list[OverviewRow]] = {}
    for platform in platforms_listed():
        window = windows.get(platform.pk, Window(WINDOW_DAYS))
        row = OverviewRow(platform, list(platform.repositories.all()), window)
        groups.setdefault(_top_level(platform), []).append(row)
    return [(LEVELS[number], groups[number]) for number in sorted(groups, reverse=True)]


@dataclass(frozen=True)
class Tile:
    """One number at the top of the overview, already written out, and what it is."""

    value: str
    label: str
    href: str


def tiles(groups: list[tuple[Level, list[OverviewRow]]], now: datetime.datetime) -> list[Tile]:
    """What the overview says first."""
    rows = [row for _, rows in groups for row in rows]
    blocking = sum(len(rows) for level, rows in groups if level.number == MATURE)
    today = add(row.window.today for row in rows)
    shown = figures(today)["pass_rate"]
    decided = Event.objects.filter(is_decision=True, at__gte=now - datetime.timedelta(days=7)).count()
    return [
        Tile(f"{len(rows):,}", f"platforms · {blocking:,} may block a merge", reverse("public:platforms")),
        Tile(
            f"{today.rows:,}",
            f"pull request jobs today · {today.buckets.get('in_progress', 0):,} in progress",
            "",
        ),
        Tile(percent(shown.value), f"of {shown.rows:,} jobs that ended today passed", ""),
        Tile(f"{decided:,}", "decisions in the last 7 days", reverse("audit:decisions")),
    ]


@dataclass(frozen=True)
class PlatformFigures:
    """A platform's figures over the window, its days, and where its rows went."""

    window: Window
    rows: list[Row]
    strip: list[tuple[datetime.date, str, str]]

    @property
    def parts(self) -> list[tuple[int, str]]:
        """(count, words) of what a bucket holds and its name does not say."""
        counted = self.window.counted
        return [(count, words) for part, words in PARTS.items() if (count := getattr(counted, part))]

    @property
    def buckets(self) -> list[tuple[str, int, str]]:
        """(bucket, count, tone) for the bar: disjoint, and together all rows."""
        counts = self.window.counted.buckets
        return [
            (bucket.replace("_", " "), counts[bucket], STATUS[bucket][0]) for bucket in BUCKETS if counts.get(bucket)
        ]


def figure_rows(platform: Platform, now: datetime.datetime) -> PlatformFigures:
    """Every metric of a platform's pull request jobs over the last 14 days."""
    windows = platform_windows(
        scope=PULL_REQUESTS, today=now.date(), days=WINDOW_DAYS, strip_days=STRIP_DAYS, platform=platform
    )
    window = windows.get(platform.pk, Window(WINDOW_DAYS))
    return PlatformFigures(window, window.sheet, strip_of(window))


def strip_of(window: Window) -> list[tuple[datetime.date, str, str]]:
    """A window's days as the strip takes them: (date, tone, what the day says)."""
    return [
        (
            day.day,
            day.tone,
            f"{percent(day.rate.value)}, {day.rate.part:,} of {day.rate.rows:,}" if day.rate.rows else "no data",
        )
        for day in window.strip
    ]


def heard_of(repositories: list[Repository], now: datetime.datetime, *, sees_private: bool) -> list[Repository]:
    """The same repositories, each with `last_callback_at` and `silent_hours` (None while it is not silent); with
    `is_silence_private` where that is not for whoever has not `sees_private`: at L1, and of one that was never public.
    """
    last = last_callbacks(repositories, sees_private=sees_private)
    for repository in repositories:
        at, is_listed = last[repository.pk], repository.level > UNLISTED
        is_public = repository.level >= PUBLIC_FROM or (not is_listed and at is not None)
        repository.is_silence_private = not (is_public or sees_private)  # type: ignore[attr-defined]
        repository.last_callback_at = at  # type: ignore[attr-defined]
        repository.silent_hours = silent_hours(at, now) if is_listed else None  # type: ignore[attr-defined]
    return repositories


@dataclass(frozen=True)
class Standing:
    """A repository's ladder: each level with when it was reached, or what it would bring."""

    repository: Repository
    rungs: list[tuple[Level, str, str]]

    @classmethod
    def of(cls, repository: Repository, now: datetime.datetime) -> "Standing":
        """`repository` comes with its level intervals, newest first."""
        since = held_since(repository.level_intervals.all())
        intervals = {interval.level: interval for interval in reversed(list(repository.level_intervals.all()))}
        rungs = []
        for level in LEVELS[1:]:
            interval = intervals.get(level.number)
            if level.number == repository.level and interval:
                began = since or interval.started_at
                rungs.append((level, "on", f"since {began:%Y-%m-%d} · {(now - began).days:,} d"))
            elif level.number < repository.level:
                rungs.append((level, "done", f"{interval.started_at:%Y-%m-%d}" if interval else "passed over"))
            else:
                rungs.append((level, "", f"check: {level.check}"))
        return cls(repository, rungs)


PULL_REQUESTS_SHOWN = 20


@dataclass(frozen=True)
class Place:
    """Where a commit stands on main. `behind` is how many commits main has gone on since; None: it is off main, or
    that is not known."""

    commit: Commit
    behind: int | None
    children: list[Commit]
    pull_requests: list[MergeBase]


def place_on_main(sha: str) -> Place | None:
    """The place of a commit that is or was on main (whole, or its first characters); None for any other."""
    commit = graph_selectors.commit_of(sha)
    if commit is None:
        return None
    return Place(
        commit,
        graph_selectors.behind(commit),
        list(graph_selectors.children_of(commit)),
        list(graph_selectors.pull_requests_from(commit)[:PULL_REQUESTS_SHOWN]),
    )


def _top_level(platform: Any) -> int:
    return platform.top_level
