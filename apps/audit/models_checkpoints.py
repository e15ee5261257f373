"""Signed checkpoints of the log, and how far each outside repository has them."""

from django.db import models

from apps.audit import checkpoints
from apps.core.outbox import PENDING, SENDING, WORDS_MAX


class Checkpoint(models.Model):
    """The log's head at one moment, signed. `text` and `signature` are the record; the columns repeat parts of it.

    Append-only like the events (migration 0007): a trigger lets in only the next number, which names the SHA-256 of the
    text before it and an event that stands in the log.
    """

    number = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    seq = models.BigIntegerField()
    hash = models.CharField(max_length=64)
    previous = models.CharField(max_length=64)
    public_key = models.CharField(max_length=44)
    text = models.TextField()
    signature = models.CharField(max_length=88)

    class Meta:
        ordering = ["-number"]

    def __str__(self) -> str:
        return f"checkpoint {self.number}, to event {self.seq}"

    @property
    def key_id(self) -> str:
        return checkpoints.key_id(self.public_key)

    @property
    def file(self) -> str:
        """The checkpoint as a file that somebody keeps."""
        return checkpoints.file_of(self.text, self.signature)

    @property
    def file_name(self) -> str:
        return f"checkpoint-{self.number:06}.json"


class CheckpointPush(models.Model):
    """The outbox to one outside git repository: what it has, when that was last true, and what went wrong since.

    `number` is the newest checkpoint that is known to stand there, 0 before the first; `pushed_at` is the last real
    success and outlives later failures.
    """

    address = models.CharField(max_length=500, unique=True)
    number = models.BigIntegerField(default=0)
    pushed_at = models.DateTimeField(null=True)
    state = models.CharField(max_length=10, choices=[(PENDING, "waits"), (SENDING, "is being sent")], default=PENDING)
    attempts = models.IntegerField(default=0)
    changed_at = models.DateTimeField()
    next_attempt_at = models.DateTimeField()
    error = models.CharField(max_length=WORDS_MAX, blank=True)

    def __str__(self) -> str:
        return f"{self.address}: {self.error or f'to checkpoint {self.number}'}"
