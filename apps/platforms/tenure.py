"""How long a repository has held its level, and history from before the hub knew it."""

import datetime
from collections.abc import Iterable

from django.db import IntegrityError, transaction

from apps.audit.enums import Action
from apps.audit.services import Actor, record
from apps.core.errors import Problem
from apps.platforms.edits import subject_of
from apps.platforms.models import LevelInterval, Repository
from apps.platforms.policy import LEVELS


def held_since(intervals: Iterable[LevelInterval]) -> datetime.datetime | None:
    """Since when the newest interval's level is held without a break. `intervals` come newest first; None of none."""
    since, level = None, None
    for interval in intervals:
        if since is not None and (interval.level != level or interval.ended_at != since):
            break
        since, level = interval.started_at, interval.level
    return since


@transaction.atomic
def import_interval(
    *,
    repository: Repository,
    level: int,
    started_at: datetime.datetime,
    ended_at: datetime.datetime | None,
    source: str,
    actor: Actor,
    now: datetime.datetime,
) -> bool:
    """Keep a level that a repository held before the hub knew it, marked as imported. It ends at the latest where the
    hub's own record begins: that one stands. Returns False, and writes nothing, when it is there already.

    Raises Problem `malformed` when it begins after that, or overlaps another imported one.
    """
    Repository.objects.select_for_update().get(pk=repository.pk)
    own = LevelInterval.objects.filter(repository=repository, is_imported=False).order_by("started_at").first()
    limit = own.started_at if own else now
    ended_at = min(ended_at or limit, limit)
    if started_at >= ended_at:
        raise Problem(
            "malformed", f"from: {started_at:%Y-%m-%d %H:%M} is not before {ended_at:%Y-%m-%d %H:%M}.", "from"
        )
    interval = LevelInterval(
        repository=repository, level=level, started_at=started_at, ended_at=ended_at, is_imported=True, event_seq=0
    )
    same = {"level": level, "started_at": started_at, "ended_at": ended_at, "is_imported": True}
    if LevelInterval.objects.filter(repository=repository, **same).exists():
        return False
    try:
        with transaction.atomic():
            interval.save()
    except IntegrityError:
        raise Problem("malformed", "from, until: overlap an interval that was imported before.", "from") from None
    event = record(
        action=Action.TENURE_IMPORTED,
        actor=actor,
        subject=subject_of(repository),
        summary=f"{repository.full_name} held {LEVELS[level].code} before this hub knew it, says {source}",
        after={"level": LEVELS[level].code, "from": started_at.isoformat(), "until": ended_at.isoformat()},
        now=now,
    )
    LevelInterval.objects.filter(pk=interval.pk).update(event_seq=event.seq)
    return True
