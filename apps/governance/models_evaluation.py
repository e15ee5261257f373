"""What a night's evaluation found."""

from django.db import models
from django.db.models import Q

from apps.governance.evaluation import Verdict
from apps.platforms.models import Repository
from apps.policies.policy import Use


class NightlyEvaluation(models.Model):
    """One repository held against one level's criteria on one UTC day, over the whole days before it.

    `results` is what evaluation.Result.written gives, row for row. A day's rows are written once: figures that are
    corrected later tell on later days.
    """

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="evaluations")
    day = models.DateField()
    level = models.SmallIntegerField()
    use = models.CharField(max_length=10, choices=[(use.value, use.value) for use in Use])
    verdict = models.CharField(max_length=10, choices=[(one.value, one.value) for one in Verdict])
    sentence = models.CharField(max_length=1_000)
    results = models.JSONField()
    notes = models.JSONField(default=list)
    policy_number = models.IntegerField()
    evaluated_at = models.DateTimeField()

    class Meta:
        ordering = ["-day", "repository", "level"]
        constraints = [
            models.UniqueConstraint(fields=["repository", "day", "level", "use"], name="governance_evaluation_once"),
            models.CheckConstraint(condition=Q(use__in=[use.value for use in Use]), name="governance_evaluation_use"),
            models.CheckConstraint(
                condition=Q(verdict__in=[one.value for one in Verdict]), name="governance_evaluation_verdict"
            ),
        ]
        indexes = [models.Index(fields=["day", "verdict"], name="governance_evaluation_day")]

    def __str__(self) -> str:
        return f"{self.repository} on {self.day}: {self.sentence}"

    @property
    def failing(self) -> set[str]:
        """The criteria that were not met and that no waiver covered."""
        not_met = Verdict.NOT_MET.value
        return {row["criterion"] for row in self.results if row["verdict"] == not_met and not row["waiver"]}
