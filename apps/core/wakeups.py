"""Wake-ups: how a committed change makes background work happen, without a task per change and without losing one.

`wake()` inserts a row in the caller's transaction. After commit one debounced task drains the table; beat drains
what a crash left behind. Redis may forget everything: the rows are the truth. (docs/adr/0002)
"""

import contextlib
import datetime
import logging
import threading
import time
from collections.abc import Callable, Iterable

from django.conf import settings
from django.db import connection, transaction

from apps.core import clock, rounds
from apps.core.models import Wakeup

log = logging.getLogger(__name__)

Handler = Callable[[list[str]], None]
# Key, and when it was written.
Taken = tuple[str, datetime.datetime]
_handlers: dict[str, Handler] = {}
_lazy: set[str] = set()
_singly: set[str] = set()
_BATCH = 500
_DEBOUNCE_SECONDS = 0.2


def register(topic: str, handler: Handler, *, lazy: bool = False, singly: bool = False) -> None:
    """Name the one handler of a topic. It gets keys and either enqueues tasks or does a bounded piece of database
    work: it runs inside the transaction that deletes the rows, so its failure keeps them.

    A `lazy` topic is drained by beat only: for work that many changes in a row share. `singly` gives each key a
    transaction of its own: for handlers that take locks, which several keys at once would hold in any order."""
    if topic in _handlers:
        raise ValueError(f"topic {topic} already has a handler")
    _handlers[topic] = handler
    if lazy:
        _lazy.add(topic)
    if singly:
        _singly.add(topic)


def follow(topic: str, handler: Handler) -> None:
    """Hand a topic's keys to one more handler, after those before it: how a room hears from a room below it. Whichever
    fails, the rows stay and all of them get the keys again."""
    if topic not in _handlers:
        raise ValueError(f"topic {topic} has no handler to follow")
    before = _handlers[topic]

    def handle(keys: list[str]) -> None:
        before(keys)
        handler(keys)

    _handlers[topic] = handle


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
    if topic not in _lazy:
        transaction.on_commit(_debounce.call)


def drain(*, limit: int = _BATCH, lazy: bool = False) -> int:
    """Hand up to `limit` waiting rows of each topic, lazy ones or the others, to its handler. Returns how many.

    Safe to run many at once. A topic whose handler fails keeps its rows and does not stop the others.
    """
    total = 0
    for topic, handler in _handlers.items():
        if (topic in _lazy) is not lazy:
            continue
        if topic in _singly:
            total += _hand_on_singly(topic, handler, lazy, limit)
            continue
        try:
            total += _hand_on(topic, handler, lazy, lambda: _take(topic, limit))  # noqa: B023  called at once
        except Exception:
            log.exception("wake-ups of %s, one by one", topic)
            total += _hand_on_singly(topic, handler, lazy, limit)
    return total


def _hand_on(topic: str, handler: Handler, lazy: bool, take: Callable[[], list[Taken]]) -> int:
    with transaction.atomic():
        taken = take()
        for moment, keys in _by_moment(taken, lazy=lazy):
            with clock.at(moment) if settings.DEMO else contextlib.nullcontext():
                handler(keys)
    return len(taken)


def _hand_on_singly(topic: str, handler: Handler, lazy: bool, limit: int) -> int:
    """Key by key, as some topics ask for, and all after a failure: whatever key is to blame stays, and does not hold up
    the others."""
    handed = 0
    for pk in list(Wakeup.objects.filter(topic=topic).order_by("pk").values_list("pk", flat=True)[:limit]):
        try:
            handed += _hand_on(topic, handler, lazy, lambda: _take_one(pk))  # noqa: B023  called at once
        except Exception:
            log.exception("wake-up %s of %s stays", pk, topic)
            rounds.undone(f"a wake-up of {topic} stays")
    return handed


def _by_moment(taken: list[Taken], *, lazy: bool) -> list[tuple[datetime.datetime | None, list[str]]]:
    """Keys by the time under which they are looked at (None: the real one), which only in a demo can be another.

    Lazy work is shared by many changes, so it has no time but the real one.
    """
    groups: dict[datetime.datetime | None, list[str]] = {}
    for key, created_at in taken:
        groups.setdefault(None if lazy else clock.of_wakeup(created_at), []).append(key)
    return list(groups.items())


def _take(topic: str, limit: int) -> list[Taken]:
    with connection.cursor() as cursor:
        cursor.execute(
            # An array, not IN: a join may run the subquery once per row, and LIMIT would then bound nothing.
            "DELETE FROM core_wakeup WHERE id = ANY(ARRAY("
            "SELECT id FROM core_wakeup WHERE topic = %s ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)) "
            "RETURNING key, created_at",
            [topic, limit],
        )
        return cursor.fetchall()


def _take_one(pk: int) -> list[Taken]:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM core_wakeup WHERE id = (SELECT id FROM core_wakeup WHERE id = %s FOR UPDATE SKIP LOCKED) "
            "RETURNING key, created_at",
            [pk],
        )
        return cursor.fetchall()


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
            drain_wakeups.apply_async(countdown=self._seconds, retry=False)
        except Exception:  # the broker is away: the rows stay, and beat drains them when it is back
            log.warning("wake-up not enqueued, beat will drain it", exc_info=True)


_debounce = _Debounce(_DEBOUNCE_SECONDS)
