"""Background tasks of core."""

from celery import shared_task

from apps.core import wakeups


@shared_task
def drain_wakeups() -> int:
    """Hand on all waiting wake-ups. Returns how many."""
    return _drain(lazy=False)


@shared_task
def drain_lazy_wakeups() -> int:
    """Hand on the wake-ups that wait for beat. Returns how many."""
    return _drain(lazy=True)


def _drain(*, lazy: bool) -> int:
    total = 0
    while handed := wakeups.drain(lazy=lazy):
        total += handed
    return total
