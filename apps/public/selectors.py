"""What the public pages compose from several apps."""

import datetime
from dataclasses import dataclass
from typing import Any

from apps.platforms.models import Platform, Repository
from apps.platforms.policy import LEVELS, Level
from apps.platforms.selectors import platforms_listed
from apps.relay.selectors import JobFigures, job_figures

WINDOW_DAYS = 14


@dataclass(frozen=True)
class OverviewRow:
    """One platform in the overview. `figures` is None when no job of it began in the window."""

    platform: Platform
    repositories: list[Repository]
    figures: JobFigures | None


def overview_groups(now: datetime.datetime) -> list[tuple[Level, list[OverviewRow]]]:
    """Listed platforms by the highest level of their repositories, highest first; empty levels are left out."""
    figures = job_figures(since=now - datetime.timedelta(days=WINDOW_DAYS))
    groups: dict[int, list[OverviewRow]] = {}
    for platform in platforms_listed():
        row = OverviewRow(platform, list(platform.repositories.all()), figures.get(platform.pk))
        groups.setdefault(_top_level(platform), []).append(row)
    return [(LEVELS[number], groups[number]) for number in sorted(groups, reverse=True)]


def _top_level(platform: Any) -> int:
    return platform.top_level
