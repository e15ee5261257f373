"""The hub's one clock. Edges ask it once and pass `now` on; services and policy never look at a clock.

In demo mode alone it may be told to pretend a time in the past, for the length of one request or one task: so the
demo's weeks of history come in through the front door, and what follows from them in the background falls into their
time too. Outside demo mode `at()` refuses, hence nothing here has an effect.
"""

import contextlib
import datetime
from collections.abc import Iterator
from contextvars import ContextVar

from django.conf import settings
from django.utils import timezone

# A pretended time lies at least this far back. So a wake-up written under one can be told from a fresh one by its age.
PRETENDED_AGE = datetime.timedelta(minutes=1)
# Far enough back for any demo, and for "the last weeks" to lie within the calendar.
PRETENDED_FROM = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
_pretended: ContextVar[datetime.datetime | None] = ContextVar("pretended_time", default=None)


def now() -> datetime.datetime:
    """The current time, aware, UTC; or the one that is pretended."""
    return _pretended.get() or timezone.now()


def pretended() -> datetime.datetime | None:
    """The time that is pretended here; None where it is the real one."""
    return _pretended.get()


def real(moment: datetime.datetime) -> datetime.datetime:
    """`moment`, or the real time where one is pretended: for what is measured against the world, such as whether a
    worker is lost or a token has run out."""
    return moment if _pretended.get() is None else timezone.now()


@contextlib.contextmanager
def at(moment: datetime.datetime | None) -> Iterator[None]:
    """Let `now()` stand still at `moment`, in this thread or task; None is the real time again.

    Raises RuntimeError outside demo mode.
    """
    if not settings.DEMO:
        raise RuntimeError("only a demo pretends another time")
    token = _pretended.set(moment)
    try:
        yield
    finally:
        _pretended.reset(token)


def read(text: str) -> datetime.datetime:
    """A time to pretend, from its ISO text. Raises ValueError with a sentence that says what to send."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not an ISO time: send one like 2026-09-01T12:00:00Z.") from None
    if moment.utcoffset() != datetime.timedelta(0):
        raise ValueError(f"{text[:40]} is not in UTC: end it with Z.")
    if timezone.now() - moment < PRETENDED_AGE:
        raise ValueError(f"{text[:40]} is not in the past: send a time at least a minute ago.")
    if moment < PRETENDED_FROM:
        raise ValueError(f"{text[:40]} is before {PRETENDED_FROM:%Y-%m-%d}: send a later time.")
    return moment.astimezone(datetime.UTC)


def of_wakeup(created_at: datetime.datetime) -> datetime.datetime | None:
    """The time under which a wake-up is looked at: in demo mode its own, if that is too old to be anything but
    pretended (or left over from an earlier run); else None, the real one."""
    return created_at if settings.DEMO and timezone.now() - created_at >= PRETENDED_AGE else None
