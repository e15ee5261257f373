"""Background tasks of results."""

import datetime

from celery import shared_task

from apps.core.clock import now
from apps.results import catalogue, services

_AT_ONCE = 50
# A callback that found its wake-up waiting, as it was being handed on, commits within this time.
_SETTLE_SECONDS = 2
# So many steps of the search index a turn: half a minute's work at most.
_SEARCH_STEPS = 20


def enqueue_counts(keys: list[str]) -> None:
    """Wake-up handler of `job_changed`."""
    for first in range(0, len(keys), _AT_ONCE):
        count_days.apply_async((keys[first : first + _AT_ONCE],), countdown=_SETTLE_SECONDS)


@shared_task
def recount_recent() -> int:
    """Count today and yesterday anew, everywhere: heals what any lost message has left behind."""
    return services.recount(days=2, now=now())


@shared_task
def count_days(keys: list[str]) -> None:
    """Count the days on which jobs have changed, each `<repository pk>:<day>`."""
    services.count_days([_day_of(key) for key in keys], now=now())


def _day_of(key: str) -> services.RepositoryDay:
    repository_id, _, day = key.partition(":")
    return int(repository_id), datetime.date.fromisoformat(day)


@shared_task
def fill_search() -> int:
    """Put tests that are new to the catalogue under the search index."""
    return catalogue.fill_search(steps=_SEARCH_STEPS)
