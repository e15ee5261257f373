"""Background tasks of appeals."""

from celery import shared_task

from apps.appeals import services
from apps.core.clock import now


@shared_task
def remind_overdue() -> int:
    """Tell who may decide of appeals whose deadline has passed."""
    return services.remind_overdue(now=now())
