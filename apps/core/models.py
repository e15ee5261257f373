"""What wakes the apps above, what operators must see, and the row that says what this database is for."""

from django.db import models

from apps.core.enums import Kind


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


class Installation(models.Model):
    """The one row that says whether this database is a demo's or a real hub's. Written by the first `migrate`."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    kind = models.CharField(max_length=10, choices=Kind)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="core_installation_once"),
            models.CheckConstraint(condition=models.Q(kind__in=Kind), name="core_installation_kind"),
        ]

    def __str__(self) -> str:
        return Kind(self.kind).label


class Alarm(models.Model):
    """Something that operators must see although the hub goes on. `times`: in how many minutes (and processes) since
    `began_at` it was seen."""

    class Kind(models.TextChoices):
        LIMIT_OPEN = "limit_open", "Limits are not applied"
        GATE_NEUTRAL = "gate_neutral", "A blocking check ends as neutral"
        IDENTITY_REPLACED = "identity_replaced", "Another repository speaks under a listed name"
        DISABLED_TESTS = "disabled_tests", "Upstream's list of disabled tests is not taken"

    kind = models.CharField(max_length=40, choices=Kind.choices)
    key = models.CharField(max_length=100, blank=True)
    detail = models.CharField(max_length=500)
    began_at = models.DateTimeField()
    last_at = models.DateTimeField()
    times = models.IntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "key"], name="core_alarm_once")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.detail}"


class Round(models.Model):
    """A task that runs by itself: when it last did its work, which is more than to have run.

    `tried_at`: its last run; `said`: why that did no work, '' where it did; `is_off`: it has none, by a setting.
    `since_at`: from when on it is answerable.
    """

    name = models.CharField(max_length=200, primary_key=True)
    since_at = models.DateTimeField()
    tried_at = models.DateTimeField(null=True, blank=True)
    succeeded_at = models.DateTimeField(null=True, blank=True)
    is_off = models.BooleanField(default=False)
    said = models.CharField(max_length=300, blank=True)

    def __str__(self) -> str:
        return self.name
