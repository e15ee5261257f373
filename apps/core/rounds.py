"""Tasks that run by themselves, and when each last did its work.

To have run is not to have worked. Whoever finds, at whatever depth, that a setting leaves nothing to do calls `off`,
and whoever gets no answer, or goes on after a failure, calls `undone`. A task that raises is undone too. Everything
else is work done, also where there was nothing to do; of a task that wakes others it is to have woken them.
"""

import datetime
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from apps.core import clock
from apps.core.models import Round

# A task without a success for so many of its intervals is overdue; the quickest ones may take this long.
OVERDUE_INTERVALS = 3
OVERDUE_LEAST = datetime.timedelta(minutes=1)
_SAID_MAX = 300


@dataclass(frozen=True)
class Line:
    """A scheduled task: `name` without its module, `every` so long, and `why` there is one."""

    task: str
    every: datetime.timedelta
    why: str

    @property
    def name(self) -> str:
        return self.task.rpartition(".")[2]


@dataclass(frozen=True)
class _Shortfall:
    is_off: bool
    words: str


_lines: dict[str, Line] = {}
_shortfall: ContextVar[_Shortfall | None] = ContextVar("shortfall", default=None)


def schedule(rows: Iterable[tuple[str, float, str]]) -> None:
    """Learn what runs by itself: (task, seconds, why), in the order in which it is shown."""
    _lines.clear()
    for task, seconds, why in rows:
        _lines[task] = Line(task, datetime.timedelta(seconds=seconds), why)


def begin(*, now: datetime.datetime) -> None:
    """From here on somebody wakes these tasks: a row for each, and none for those that are scheduled no more."""
    Round.objects.exclude(name__in=list(_lines)).delete()
    Round.objects.bulk_create([Round(name=name, since_at=now) for name in _lines], ignore_conflicts=True)


def start() -> None:
    """A task begins: nothing is said of it yet."""
    _shortfall.set(None)


def off() -> None:
    """Say, within a task, that a setting leaves it nothing to do."""
    _shortfall.set(_Shortfall(is_off=True, words=""))


def undone(words: str) -> None:
    """Say, within a task, that it could not do its work, and why. Outside of one nobody listens."""
    _shortfall.set(_Shortfall(is_off=False, words=words))


def note(task: str, *, now: datetime.datetime, error: BaseException | None = None) -> None:
    """Keep how a task ended, here and now: `error` is what it raised. Of one that is not scheduled nothing is kept."""
    if task not in _lines:
        return
    moment, short = clock.real(now), _shortfall.get()
    if error is not None:
        short = _Shortfall(is_off=False, words=f"it raised {type(error).__name__}")
    kept: dict[str, Any] = {"tried_at": moment, "is_off": False, "said": ""}
    if short is None:
        kept["succeeded_at"] = moment
    else:
        kept |= {"is_off": short.is_off, "said": short.words.replace("\0", "")[:_SAID_MAX]}
    if not Round.objects.filter(name=task).update(**kept):
        Round.objects.update_or_create(name=task, defaults=kept, create_defaults={"since_at": moment, **kept})


@dataclass(frozen=True)
class Standing:
    """How a scheduled task stands. `row` None: nothing has woken it yet."""

    line: Line
    row: Round | None
    is_overdue: bool

    @property
    def is_off(self) -> bool:
        return self.row is not None and self.row.is_off

    @property
    def said(self) -> str:
        return self.row.said if self.row else ""

    @property
    def succeeded_at(self) -> datetime.datetime | None:
        return self.row.succeeded_at if self.row else None


def standings(*, now: datetime.datetime) -> Sequence[Standing]:
    """Every scheduled task, as the table has them."""
    rows = Round.objects.in_bulk(list(_lines))
    return [Standing(line, rows.get(task), _is_overdue(line, rows.get(task), now)) for task, line in _lines.items()]


def overdue(*, now: datetime.datetime) -> list[str]:
    """The names of those that are overdue."""
    return [standing.line.name for standing in standings(now=now) if standing.is_overdue]


def _is_overdue(line: Line, row: Round | None, now: datetime.datetime) -> bool:
    """Whether it is long since it did its work; of one that is off, since it last said so."""
    if row is None:
        return False
    last = row.tried_at if row.is_off else row.succeeded_at
    return now - (last or row.since_at) > max(OVERDUE_INTERVALS * line.every, OVERDUE_LEAST)
