"""Background tasks of a hub that is being adopted: each asks the mode, calls one service, and may run twice."""

from celery import shared_task

from apps.core import rounds
from apps.core.clock import now
from apps.relay import forwarding, modes, shadow


def enqueue_forwards(keys: list[str]) -> None:
    """Wake-up handler of `forward_pending`."""
    for key in keys:
        send_forward.delay(int(key))


@shared_task
def send_forward(forward_pk: int) -> str | None:
    """Post one result to the dashboard."""
    return forwarding.send(forward_pk=forward_pk, now=now())


@shared_task
def sweep_forwards() -> int:
    """Wake results for the dashboard that are due or lost their task."""
    return forwarding.sweep(now=now())


@shared_task
def look_at_checks() -> int:
    """Ask GitHub which check runs the newest commits show. Without webhooks there are no commits to ask about."""
    if not modes.current().takes_webhooks:
        rounds.off()
        return 0
    return shadow.look_at_checks(now=now())


@shared_task
def compare_deliveries() -> int:
    """Hold what the hub would do against what was done."""
    if not modes.current().compares:
        rounds.off()
        return 0
    return shadow.compare_deliveries(now=now())
