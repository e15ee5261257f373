"""The one direct way back to L3 or L4: undoing the newest change of level, where that was a temporary downgrade.

Who may do that, and while what is open, apps/levels/downgrades.py says: nothing else calls this.
"""

import datetime

from django.db import transaction

from apps.audit.models import Event
from apps.audit.services import Actor
from apps.core.errors import Problem
from apps.platforms.models import LevelInterval, Repository
from apps.platforms.policy import LEVELS
from apps.platforms.services import put_back_level


@transaction.atomic
def restore_level(
    *,
    repository: Repository,
    lowered_seq: int,
    reason: str,
    actor: Actor,
    now: datetime.datetime,
    evidence: dict[str, str],
) -> Event:
    """Put a repository back to exactly the level that it was lowered from by the event `lowered_seq`. Raises Problem
    `level_stale` where that event is no lowering of it, or its level was changed since."""
    locked = Repository.objects.select_for_update().get(pk=repository.pk)
    intervals = LevelInterval.objects.filter(repository=locked, is_imported=False).order_by("-started_at", "-pk")
    current, before = intervals.first(), intervals[1:2].first()
    if current is None or before is None or current.event_seq != lowered_seq or current.level >= before.level:
        raise Problem("level_stale", f"{locked.full_name} is at {locked.level_code}, by a newer decision.")
    level = before.level
    return put_back_level(
        locked,
        level,
        summary=f"{locked.full_name} back from {locked.level_code} to {LEVELS[level].code}",
        reason=reason,
        actor=actor,
        now=now,
        evidence={"undoes": lowered_seq, **evidence},
    )
