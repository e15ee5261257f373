"""Background tasks of the relay: each fetches by key, calls one service, and may run twice without harm."""

from celery import shared_task

from apps.core.clock import now
from apps.relay import modes, services, shadow


def fan_out_deliveries(keys: list[str]) -> None:
    """Wake-up handler of `delivery_received`: a bounded piece of database work, done on the spot."""
    decide = services.fan_out if modes.current().dispatches else shadow.intend
    for key in keys:
        decide(delivery_pk=int(key), now=now())


def enqueue_dispatches(keys: list[str]) -> None:
    """Wake-up handler of `dispatch_pending`."""
    for key in keys:
        send_dispatch.delay(int(key))


@shared_task
def send_dispatch(dispatch_pk: int) -> str | None:
    """Send one dispatch."""
    return services.send_dispatch(dispatch_pk=dispatch_pk, now=now())


@shared_task
def sweep_dispatches() -> int:
    """Wake deliveries and dispatches whose task was lost."""
    return services.sweep(now=now())
