"""Upstream's own list of disabled tests, as it was taken last. It is shown; no result is judged by it."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q

from apps.platforms.models import Platform
from apps.quarantine.enums import ListAlarm


class UpstreamList(models.Model):
    """The one row about the list: where the copy in use comes from, and why a newer one was not taken (`alarm`).

    `etag`: what its address said of this copy; `answered_at`: when the address last answered, None for a file that an
    operator brought."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    source = models.CharField(max_length=300, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    etag = models.CharField(max_length=200, blank=True)
    left_out = models.IntegerField(default=0)
    taken_at = models.DateTimeField(null=True, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)
    alarm = models.CharField(max_length=20, choices=ListAlarm.choices, blank=True)
    alarm_detail = models.CharField(max_length=500, blank=True)
    alarm_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="quarantine_list_once"),
            models.CheckConstraint(
                condition=Q(alarm="", alarm_at=None) | Q(alarm__in=ListAlarm.values, alarm_at__isnull=False),
                name="quarantine_list_alarm",
            ),
        ]

    def __str__(self) -> str:
        return self.source


class UpstreamDisabled(models.Model):
    """One test that upstream has disabled, as its list says it. `file`: '' where the list leaves it out.

    `identities`: what its class and name come to (disabled_list.identity); `words`: its platforms, in small letters."""

    said = models.CharField(max_length=500, unique=True)
    file = models.TextField(blank=True)
    identities = ArrayField(models.UUIDField())
    issue = models.CharField(max_length=20, blank=True)
    url = models.CharField(max_length=300, blank=True)
    words = models.JSONField(default=list)

    class Meta:
        verbose_name_plural = "tests disabled upstream"
        ordering = ["said"]
        indexes = [GinIndex(fields=["identities"], name="quarantine_disabled_tests")]

    def __str__(self) -> str:
        return self.said


class UpstreamWord(models.Model):
    """What a maintainer says that a word of the list means: an in-tree platform, or none of those here (None)."""

    word = models.CharField(max_length=50, unique=True)
    platform = models.ForeignKey(Platform, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    reason = models.CharField(max_length=2_000)
    by = models.CharField(max_length=200)
    at = models.DateTimeField()

    class Meta:
        ordering = ["word"]
        constraints = [models.CheckConstraint(condition=~Q(word="") & ~Q(reason=""), name="quarantine_word_said")]

    def __str__(self) -> str:
        return f"{self.word}: {self.platform or 'no platform here'}"
