"""What oncalls say about jobs that ended red."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from apps.core.ids import public_id
from apps.relay.models import Job


class Acknowledgement(models.Model):
    """Somebody of the downstream's side has seen that a job is red, says why, and when they expect it to be mended.

    One for each job and person, and never changed: a trigger refuses it.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="acknowledgements")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="acknowledgements")
    by_label = models.CharField(max_length=200)
    reason = models.CharField(max_length=2_000)
    expected_at = models.DateTimeField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["job", "by"], name="relay_acknowledgement_once"),
            models.CheckConstraint(condition=~Q(reason=""), name="relay_acknowledgement_reason"),
            models.CheckConstraint(condition=Q(expected_at__gt=F("at")), name="relay_acknowledgement_forward"),
        ]

    def __str__(self) -> str:
        return f"{self.by_label} about {self.job}"
