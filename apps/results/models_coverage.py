"""How much of what could be run a report ran."""

from django.db import models
from django.db.models import F, Q

from apps.results.models_reports import Report


class Basis(models.TextChoices):
    """Whose names coverage is counted over."""

    REFERENCE = "reference", "the names of an in-tree platform's report of the same commit and variant"
    SEEN = "seen", "the names that were reported here in the last 30 days"


class Coverage(models.Model):
    """A report's coverage, of its `revision`: `names` are the whole, each executed, skipped or missing.

    `classes` are the skips among the names by class, `skips` all skips of the report by class, names or not.
    """

    report = models.OneToOneField(Report, on_delete=models.CASCADE, related_name="coverage")
    revision = models.IntegerField()
    basis = models.CharField(max_length=20, choices=Basis.choices)
    reference = models.ForeignKey(Report, on_delete=models.SET_NULL, null=True, blank=True, related_name="covers")
    names = models.IntegerField()
    executed = models.IntegerField()
    skipped = models.IntegerField()
    missing = models.IntegerField()
    classes = models.JSONField(default=dict)
    skips = models.JSONField(default=dict)
    counted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(executed__gte=0, skipped__gte=0, missing__gte=0)
                & Q(names=F("executed") + F("skipped") + F("missing")),
                name="results_coverage_sums",
            ),
            models.CheckConstraint(condition=Q(basis__in=Basis.values), name="results_coverage_basis"),
        ]

    def __str__(self) -> str:
        return f"{self.report}: {self.executed} of {self.names}"

    @property
    def share(self) -> float | None:
        """Executed of all names, 0 to 1; None of no names."""
        return self.executed / self.names if self.names else None

    @property
    def parts(self) -> list[tuple[str, int, str]]:
        """For a bar: executed, the skips by class, missing."""
        skips = [(f"skipped: {name.replace('_', ' ')}", count, "quiet") for name, count in self.classes.items()]
        return [("executed", self.executed, "good"), *skips, ("missing", self.missing, "warn")]
