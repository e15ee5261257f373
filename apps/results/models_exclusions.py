"""Failures that stand apart: a room above says which tests, of which results, and why."""

from django.db import models
from django.db.models import F, Q

from apps.platforms.models import Platform
from apps.results.models_catalogue import Test


class Exclusion(models.Model):
    """Red outcomes of one test, or of tests that a pattern fits, are listed apart in results received in
    [`from_at`, `until_at`), None for open. The test still runs, and its raw outcome stays.

    `source` and `source_id` name what wrote it, `url` its page. `pattern`: apps/results/exclusions.py.
    """

    source = models.CharField(max_length=20)
    source_id = models.CharField(max_length=40)
    url = models.CharField(max_length=200)
    platform = models.ForeignKey(Platform, on_delete=models.PROTECT, related_name="exclusions")
    variant = models.CharField(max_length=100)
    test = models.ForeignKey(Test, on_delete=models.PROTECT, null=True, blank=True, related_name="exclusions")
    pattern = models.CharField(max_length=500, blank=True)
    reason = models.CharField(max_length=500)
    from_at = models.DateTimeField()
    until_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-from_at", "-pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(test__isnull=False, pattern="") | Q(test=None) & ~Q(pattern=""),
                name="results_exclusion_one_scope",
            ),
            models.CheckConstraint(
                condition=Q(until_at=None) | Q(until_at__gte=F("from_at")), name="results_exclusion_forward"
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="results_exclusion_reason"),
            models.UniqueConstraint(
                fields=["source", "source_id", "test", "pattern", "from_at"],
                nulls_distinct=False,
                name="results_exclusion_once",
            ),
        ]
        indexes = [
            models.Index(fields=["platform", "variant", "from_at"], name="results_exclusion_of"),
            models.Index(fields=["source", "source_id"], name="results_exclusion_source"),
        ]

    def __str__(self) -> str:
        return f"{self.test or self.pattern} ({self.platform}, {self.variant})"
