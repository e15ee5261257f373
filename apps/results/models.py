"""Rollups of jobs: what a page reads instead of a million rows. They can be rebuilt from the jobs at any time."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from apps.platforms.models import Repository
from apps.results.metrics import SCOPES
from apps.results.models_catalogue import Alias, PublicTest, Reason, SearchedTest, Test
from apps.results.models_coverage import Basis, Coverage
from apps.results.models_exclusions import Exclusion
from apps.results.models_reports import (
    Finding,
    InTreeSource,
    Removal,
    Report,
    ReportFile,
    Upload,
    UploadPart,
)
from apps.results.models_set_aside import SetAside

# Django looks for models here.
__all__ = [
    "Alias",
    "Basis",
    "Coverage",
    "DayFigures",
    "Exclusion",
    "Finding",
    "InTreeSource",
    "PublicTest",
    "Reason",
    "Removal",
    "Report",
    "ReportFile",
    "SearchedTest",
    "SetAside",
    "Test",
    "Upload",
    "UploadPart",
]


class DayFigures(models.Model):
    """One repository's jobs of one scope that were first seen on one UTC day, and the dispatches sent on it, counted as
    metrics.Counted says."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="day_figures")
    scope = models.CharField(max_length=20)
    day = models.DateField()
    success = models.IntegerField(default=0)
    failure = models.IntegerField(default=0)
    timed_out = models.IntegerField(default=0)
    cancelled = models.IntegerField(default=0)
    contradicted = models.IntegerField(default=0)
    neutral = models.IntegerField(default=0)
    in_progress = models.IntegerField(default=0)
    superseded = models.IntegerField(default=0)
    unheard = models.IntegerField(default=0)
    unexpected = models.IntegerField(default=0)
    informational = models.IntegerField(default=0)
    superseded_by_push = models.IntegerField(default=0)
    as_declared = models.IntegerField(default=0)
    listed_apart = models.IntegerField(default=0)
    first_ended = models.IntegerField(default=0)
    first_success = models.IntegerField(default=0)
    timed = models.IntegerField(default=0)
    overrun = models.IntegerField(default=0)
    queued = models.IntegerField(default=0)
    queue_seconds = models.BigIntegerField(default=0)
    red = models.IntegerField(default=0)
    acknowledged = ArrayField(models.IntegerField(), default=list)
    runs = ArrayField(models.IntegerField(), default=list)
    sent = models.IntegerField(default=0)
    answered = models.IntegerField(default=0)
    undecided = models.IntegerField(default=0)
    upstream_jobs = models.IntegerField(default=0)
    upstream_success = models.IntegerField(default=0)
    upstream_timed_out = models.IntegerField(default=0)
    upstream_genuine = models.IntegerField(default=0)
    upstream_overrun = models.IntegerField(default=0)
    upstream_queued = models.IntegerField(default=0)
    upstream_queue_seconds = models.BigIntegerField(default=0)
    upstream_runs = ArrayField(models.IntegerField(), default=list)
    # None: something was sent, and nobody has answered.
    last_callback_at = models.DateTimeField(null=True)
    counted_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "day figures"
        constraints = [
            models.UniqueConstraint(fields=["repository", "scope", "day"], name="results_day_figures_once"),
            models.CheckConstraint(condition=Q(scope__in=list(SCOPES)), name="results_day_figures_scope"),
        ]
        indexes = [
            models.Index(fields=["scope", "day"], name="results_day_figures_day"),
            models.Index(fields=["-counted_at"], name="results_day_figures_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.repository} {self.scope} {self.day}"
