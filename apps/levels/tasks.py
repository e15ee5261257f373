"""Background tasks of levels: each calls one service, and may run twice without harm."""

from celery import shared_task

from apps.core.clock import now
from apps.levels import promoting


@shared_task
def take_due_promotions() -> int:
    """Bring into force what is approved and has waited for objections."""
    return promoting.take_due(now=now())
