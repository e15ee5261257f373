"""Wake-ups: how a committed change makes background work happen, without a task per change and without losing one.

`wake()` inserts a row in the caller's transaction. After commit one debounced task drains the table; beat drains
what a crash left behind. Redis may forget everything: the rows are the truth. (docs/adr/0002)
"""

import datetime
import logging
import threading
import time
from collections.abc import Callable, Iterable

from django.db import connection, transaction

log = logging.getLogger(__name__)

Handler = Callable[[list[str]], None]
_handlers: dict[str, Handler] = {}
_BATCH = 500
_DEBOUNCE_SECONDS = 0.2


def register(topic: str, handler: Handler) -> None:
    """Name the one handler of a topic. It gets keys and either enqueues tasks or does a bounded piece of database
    work: it runs inside the transaction that deletes the rows, so its failure keeps them."""
    if topic in _handlers:
        raise ValueError(f"topic {topic} already has a handler")
    _handlers[topic] = handler


def wake(topic: str, keys: Iterable[str], *, now: datetime.datetime) -> None:
    """Ask, in the current transaction, that each key of a topic be looked at after commit."""
    if topic not in _handlers:
        raise ValueError(f"topic {topic} has no handler")
    rows = [(topic, key, now) for key in keys]
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO core_wakeup (topic, key, created_at) VALUES (%s, %s, %s) ON CONFLICT (topic, key) DO NOTHING",
            rows,
        )
    transaction.on_commit(_debounce.call)


def drain(*, limit: int = _BATCH) -> int:
    """Hand up to `limit` waiting rows of each topic to its handler. Returns how many were handed on.

    Safe to run many at once. A topic whose handler fails keeps its rows and does not stop the others.
    """
    total = 0
    for topic, handler in _handlers.items():
        try:
            with transaction.atomic():
                if keys := _take(topic, limit):
                    handler(keys)
            total += len(keys)
        except Exception:
            log.exception("wake-ups of %s stay", topic)
    return total


def _take(topic: str, limit: int) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM core_wakeup WHERE id IN "
            "(SELECT id FROM core_wakeup WHERE topic = %s ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING key",
            [topic, limit],
        )
        return [key for (key,) in cursor.fetchall()]


class _Debounce:
    """At most one enqueue per process and interval; beat picks up what falls between."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = 0.0
        self._lock = threading.Lock()

    def call(self) -> None:
        with self._lock:
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + self._seconds
        from apps.core.tasks import drain_wakeups

        try:
            # The short delay lets the rows of a burst gather, so that one drain carries them all.
            drain_wakeups.apply_async(countdown=self._seconds)
        except Exception:  # the broker is away: the rows stay, and beat drains them when it is back
            log.warning("wake-up not enqueued, beat will drain it", exc_info=True)


_debounce = _Debounce(_DEBOUNCE_SECONDS)
