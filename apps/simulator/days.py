"""The calendar of a demo's history: which events of upstream fall on which day."""

import datetime
from typing import NamedTuple

from apps.simulator.chance import chance
from apps.simulator.upstream import Event, Upstream

WORKDAY_EVENTS = (6, 9)
WEEKEND_EVENTS = (1, 3)
# The hub takes a pretended time only where it is past for certain.
MARGIN = datetime.timedelta(minutes=2)


class Day(NamedTuple):
    """What happens on one day: until when (epoch seconds) its callbacks go out, its events by their times, and main's
    newest commit as it begins."""

    begin: datetime.datetime
    head: str
    end: float
    events: tuple[tuple[datetime.datetime, Event], ...]


def days_of(upstream: Upstream, *, seed: int, days: int, until: datetime.datetime) -> list[Day]:
    """The events of `days` whole UTC days and of the one that `until` ends; thin at weekends, mostly in office hours.

    `upstream` makes them, and stands where they end afterwards.
    """
    midnight = until.replace(hour=0, minute=0, second=0, microsecond=0)
    return [_day(upstream, seed, midnight - datetime.timedelta(days=ago), until) for ago in range(days, -1, -1)]


def _day(upstream: Upstream, seed: int, begin: datetime.datetime, until: datetime.datetime) -> Day:
    rng, head = chance(seed, "day", begin.date()), upstream.main_sha
    count = rng.randint(*(WORKDAY_EVENTS if begin.weekday() < 5 else WEEKEND_EVENTS))
    hours = sorted(rng.triangular(5, 23, 16) for _ in range(count))
    end = min(begin + datetime.timedelta(days=1), until - MARGIN)
    times = [at for hour in hours if (at := begin + datetime.timedelta(hours=hour)) < end]
    return Day(begin, head, end.timestamp(), tuple((at, upstream.next_event(at)) for at in times))
