"""Waivers: a criterion that does not keep a repository from a level, for a while, with a reason."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Func, Q

from apps.core.ids import public_id
from apps.platforms.models import Repository


class Waiver(models.Model):
    """One criterion of one repository does not count until `until_at`. Never changed but for its withdrawal.

    `criterion` is the key of a policy row (policies.policy.Criterion.key). `event_seq`: the decision.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="waivers")
    criterion = models.CharField(max_length=60)
    reason = models.CharField(max_length=2_000)
    by = models.CharField(max_length=200)
    from_at = models.DateTimeField()
    until_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    event_seq = models.BigIntegerField(unique=True)

    class Meta:
        ordering = ["-from_at", "-pk"]
        constraints = [
            models.CheckConstraint(condition=~Q(reason=""), name="governance_waiver_reason"),
            models.CheckConstraint(condition=Q(until_at__gt=F("from_at")), name="governance_waiver_forward"),
            ExclusionConstraint(
                name="governance_waiver_one_at_a_time",
                expressions=[
                    ("repository", RangeOperators.EQUAL),
                    ("criterion", RangeOperators.EQUAL),
                    (
                        Func("from_at", "until_at", function="tstzrange", output_field=DateTimeRangeField()),
                        RangeOperators.OVERLAPS,
                    ),
                ],
                condition=Q(withdrawn_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.criterion} of {self.repository}"
