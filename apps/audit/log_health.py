"""What the hub's staff must know of the log: is it signed, does it stand elsewhere too, could the hub rewrite it."""

import datetime
from dataclasses import dataclass

from django.conf import settings

from apps.audit import grants, selectors
from apps.audit.grants import Powers
from apps.audit.models import Checkpoint, CheckpointPush

# One is made every day, within minutes of its beginning.
CHECKPOINT_LATE = datetime.timedelta(hours=25)


@dataclass(frozen=True)
class LogHealth:
    """`has_key` without `checkpoint`: none was made yet. `address` is empty where checkpoints stay here."""

    has_key: bool
    checkpoint: Checkpoint | None
    is_late: bool
    address: str
    push: CheckpointPush | None
    powers: Powers

    @property
    def is_behind(self) -> bool:
        """Whether the outside repository lacks a checkpoint."""
        return self.checkpoint is not None and (self.push is None or self.push.number < self.checkpoint.number)


def log_health(*, now: datetime.datetime) -> LogHealth:
    """As of now."""
    newest = selectors.newest_checkpoint()
    return LogHealth(
        has_key=bool(settings.CHECKPOINT_KEY),
        checkpoint=newest,
        is_late=newest is not None and now - newest.at > CHECKPOINT_LATE,
        address=settings.CHECKPOINT_GIT,
        push=selectors.push_to(settings.CHECKPOINT_GIT) if settings.CHECKPOINT_GIT else None,
        powers=grants.powers(),
    )
