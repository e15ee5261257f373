"""Jobs that stand aside from the figures that decisions read: a room above says which, and why."""

from django.db import models
from django.db.models import Q

from apps.relay.models import Job


class SetAside(models.Model):
    """One job, as it counts, is left out of what criteria read from `since` on. Raw figures keep it. Never changed.

    `why` is the claim that was accepted, `source_id` and `url` name what accepted it, `event_seq` the decision.
    """

    job = models.OneToOneField(Job, on_delete=models.PROTECT, related_name="set_aside")
    why = models.CharField(max_length=100)
    source_id = models.CharField(max_length=40)
    url = models.CharField(max_length=200)
    since = models.DateTimeField()
    event_seq = models.BigIntegerField()

    class Meta:
        ordering = ["-since", "-pk"]
        verbose_name_plural = "set aside"
        constraints = [
            models.CheckConstraint(condition=~Q(why="") & ~Q(url=""), name="results_set_aside_says_why"),
        ]
        indexes = [models.Index(fields=["source_id"], name="results_set_aside_source")]

    def __str__(self) -> str:
        return f"{self.job}: {self.why}"
