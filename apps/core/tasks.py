"""Background tasks of core."""

from celery import shared_task

from apps.core import wakeups


@shared_task
def drain_wakeups() -> int:
    """Hand on all waiting wake-ups. Returns how many."""
    total = 0
    while handed := wakeups.drain():
        total += handed
    return total
