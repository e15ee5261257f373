"""Background tasks of levels: each calls one service, and may run twice without harm."""

from celery import shared_task

from apps.core.clock import now
from apps.levels import promoting
from apps.levels.downgrades import follow_downgrades
from apps.levels.falling import follow_nights
from apps.levels.ways_back import follow_ways_back


@shared_task
def take_due_promotions() -> int:
    """Bring into force what is approved and has waited for objections."""
    return promoting.take_due(now=now())


@shared_task
def follow_falling() -> int:
    """Open and end notices, remind of overdue downgrades, tell of ways back that were reached."""
    moment = now()
    return follow_nights(now=moment) + follow_downgrades(now=moment) + follow_ways_back(now=moment)
