"""Background tasks of the relay: each fetches by key, calls one service, and may run twice without harm."""

import random

from celery import shared_task

from apps.core.clock import now
from apps.relay import outbox, services

_chance = random.SystemRandom()


def fan_out_deliveries(keys: list[str]) -> None:
    """Wake-up handler of `delivery_received`: a bounded piece of database work, done on the spot."""
    for key in keys:
        services.fan_out(delivery_pk=int(key), now=now())


def enqueue_dispatches(keys: list[str]) -> None:
    """Wake-up handler of `dispatch_pending`."""
    for key in keys:
        send_dispatch.delay(int(key))


@shared_task
def send_dispatch(dispatch_pk: int) -> str | None:
    """Send one dispatch."""
    return outbox.send_dispatch(dispatch_pk=dispatch_pk, now=now(), chance=_chance.random())


@shared_task
def sweep_dispatches() -> int:
    """Wake deliveries and dispatches that are due or have lost their task, and let those go that waited for a place."""
    return outbox.sweep(now=now())
