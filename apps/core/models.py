"""The one model that every app above wakes others with."""

from django.db import models


class Wakeup(models.Model):
    """Someone must look at `key` of `topic`. Written in the transaction that made it necessary; deleted when handed on.

    Many reasons to look at the same thing are one row: the look itself finds all that is new.
    """

    topic = models.CharField(max_length=60)
    key = models.CharField(max_length=100)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["topic", "key"], name="core_wakeup_once")]

    def __str__(self) -> str:
        return f"{self.topic} {self.key}"
