"""What maintainers declare that a job is meant to be."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import MD5

from apps.core.ids import public_id
from apps.platforms.models import Repository
from apps.relay.enums import Declared


class TimeRange(Func):
    """From a time, included, until another, excluded."""

    function = "TSTZRANGE"
    output_field = DateTimeRangeField()


class DeclaredOutcome(models.Model):
    """Jobs of this repository, workflow and name that the hub first saw from `starts_at` until `ends_at` are meant to
    end as `outcome` says, or are informational. Withdrawn ones are kept and count no more."""

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="declared_outcomes")
    workflow = models.CharField(max_length=300)
    job_name = models.CharField(max_length=300, blank=True)
    outcome = models.CharField(max_length=20, choices=Declared.choices)
    reason = models.CharField(max_length=2000)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    declared_at = models.DateTimeField()
    declared_by = models.CharField(max_length=200)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-declared_at", "-id"]
        indexes = [
            models.Index(
                F("repository"),
                MD5("workflow"),
                MD5("job_name"),
                condition=Q(withdrawn_at=None),
                name="relay_declared_of_job",
            ),
        ]
        constraints = [
            # A job counts in one way: counted.py could not choose between two that hold at once.
            ExclusionConstraint(
                name="relay_declared_once",
                expressions=[
                    (F("repository"), RangeOperators.EQUAL),
                    (MD5("workflow"), RangeOperators.EQUAL),
                    (MD5("job_name"), RangeOperators.EQUAL),
                    (TimeRange(F("starts_at"), F("ends_at")), RangeOperators.OVERLAPS),
                ],
                condition=Q(withdrawn_at=None),
            ),
            models.CheckConstraint(condition=Q(outcome__in=Declared.values), name="relay_declared_outcome"),
            models.CheckConstraint(condition=Q(ends_at__gt=F("starts_at")), name="relay_declared_time"),
            models.CheckConstraint(condition=~Q(reason=""), name="relay_declared_reason"),
        ]

    def __str__(self) -> str:
        return f"{self.repository} {self.workflow} / {self.job_name}: {self.outcome}"
