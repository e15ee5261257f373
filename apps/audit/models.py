"""The append-only, hash-chained event log. PostgreSQL itself refuses to change it (migration 0002)."""

from django.db import models

from apps.audit.enums import ActorKind, action_choices


class Event(models.Model):
    """One thing that was decided or done. `body` is the record; the columns beside it repeat parts of it for filtering.

    `seq` has no gaps. `hash` = SHA-256 of previous_hash, a newline and body, all as UTF-8, in lower-case hex.
    """

    seq = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    action = models.CharField(max_length=60, choices=action_choices)
    actor_kind = models.CharField(max_length=20, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=100)
    actor_label = models.CharField(max_length=200)
    subject_kind = models.CharField(max_length=40)
    subject_id = models.CharField(max_length=100)
    subject_label = models.CharField(max_length=200)
    is_decision = models.BooleanField()
    body = models.TextField()
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64, unique=True)

    class Meta:
        ordering = ["-seq"]
        indexes = [
            models.Index(fields=["subject_kind", "subject_id", "-seq"], name="audit_event_subject"),
            models.Index(fields=["-seq"], condition=models.Q(is_decision=True), name="audit_event_decision"),
        ]

    def __str__(self) -> str:
        return f"#{self.seq} {self.action}"


class Head(models.Model):
    """The last link. One row; only the append trigger moves it, and its lock puts appends in order."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    seq = models.BigIntegerField()
    hash = models.CharField(max_length=64)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="audit_head_single")]

    def __str__(self) -> str:
        return f"head #{self.seq}"


class LastVerification(models.Model):
    """What the newest proof of the chain found. One row; shown beside the log."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    checked_at = models.DateTimeField()
    verified_to = models.BigIntegerField()
    finding = models.TextField(blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="audit_last_verification_single")]

    def __str__(self) -> str:
        return self.finding or f"verified to #{self.verified_to}"


# Each of these has a file of its own; Django looks for models here.
from apps.audit.models_checkpoints import Checkpoint, CheckpointPush  # noqa: E402

__all__ = ["Checkpoint", "CheckpointPush", "Event", "Head", "LastVerification"]
