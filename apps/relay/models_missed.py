"""Webhooks that GitHub sent and the hub did not get, and the outages of the hub that they show."""

from django.db import models
from django.db.models import F, Q


class MissedState(models.TextChoices):
    MISSING = "missing", "missing"
    RECOVERED = "recovered", "recovered"
    LOST = "lost", "lost: GitHub did not send it again"


class HubOutage(models.Model):
    """The hub did not take webhooks: from the first that it missed to the last."""

    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(ended_at__gte=F("started_at")), name="relay_outage_forward"),
        ]
        indexes = [models.Index(fields=["-ended_at"], name="relay_outage_recent")]

    def __str__(self) -> str:
        return f"{self.started_at:%Y-%m-%d %H:%M} to {self.ended_at:%Y-%m-%d %H:%M}"


class MissedDelivery(models.Model):
    """One webhook of GitHub's log that was not stored. `github_id` is its number in that log: what is asked for."""

    delivery_id = models.CharField(max_length=100, unique=True)
    outage = models.ForeignKey(HubOutage, on_delete=models.PROTECT, related_name="missed")
    github_id = models.BigIntegerField()
    event = models.CharField(max_length=40)
    delivered_at = models.DateTimeField()
    state = models.CharField(max_length=20, choices=MissedState.choices, default=MissedState.MISSING)
    attempts = models.IntegerField(default=0)
    due_at = models.DateTimeField()
    error = models.CharField(max_length=500, blank=True)
    recovered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "missed deliveries"
        constraints = [
            models.CheckConstraint(condition=Q(state__in=MissedState.values), name="relay_missed_state"),
            models.CheckConstraint(
                condition=Q(state="recovered") ^ Q(recovered_at=None), name="relay_missed_recovered_at"
            ),
        ]
        indexes = [models.Index(fields=["due_at"], condition=Q(state="missing"), name="relay_missed_waiting")]

    def __str__(self) -> str:
        return self.delivery_id


class DeliveryLog(models.Model):
    """Up to when GitHub's log of deliveries was compared with what is stored. One row.

    `mode` is the hub's, and `begun_at` when it was first compared in that mode: what was sent before is not the hub's.
    """

    mode = models.CharField(max_length=20)
    begun_at = models.DateTimeField()
    compared_to = models.DateTimeField()
    compared_at = models.DateTimeField()
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="relay_delivery_log_single")]

    def __str__(self) -> str:
        return f"compared to {self.compared_to:%Y-%m-%d %H:%M}"


class UnreadLog(models.Model):
    """A stretch of GitHub's log that was not read yet, because it is too long to be read at once: from `until`, where
    `cursor` leads on, back to `since`. One that GitHub has forgotten stays: what was missed in it is unknown for good.
    """

    since = models.DateTimeField()
    until = models.DateTimeField()
    cursor = models.CharField(max_length=200)
    is_forgotten = models.BooleanField(default=False)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(until__gte=F("since")), name="relay_unread_log_forward")]

    def __str__(self) -> str:
        return f"{self.since:%Y-%m-%d %H:%M} to {self.until:%Y-%m-%d %H:%M}"
