"""Dated versions of the policy, and the draft that is to become the next one."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from apps.core.ids import public_id


class DraftState(models.TextChoices):
    """Where a draft is."""

    OPEN = "open", "open"
    IN_FORCE = "in_force", "put in force"
    DROPPED = "dropped", "dropped"


class PolicyVersion(models.Model):
    """What holds from `from_at` on. Rows are never changed: a decision keeps the version that it was made by.

    `values` is what policy.written gives. Number 0 is what ships and has no row. `event_seq`: the decision.
    """

    number = models.IntegerField(unique=True)
    values = models.JSONField()
    from_at = models.DateTimeField(unique=True)
    title = models.CharField(max_length=200)
    reason = models.CharField(max_length=2_000)
    by = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    event_seq = models.BigIntegerField(unique=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.CheckConstraint(condition=Q(number__gte=1), name="policies_version_number"),
            models.CheckConstraint(condition=~Q(reason=""), name="policies_version_reason"),
            models.CheckConstraint(condition=Q(from_at__gte=F("created_at")), name="policies_version_not_backdated"),
        ]

    def __str__(self) -> str:
        return f"policy {self.number}"


class PolicyDraft(models.Model):
    """A version in the making: edited, previewed, and put in force by a decision. `revision` guards every change.

    `base_number`: the version whose rows it began with. `version`: what it became.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    state = models.CharField(max_length=20, choices=DraftState.choices, default=DraftState.OPEN)
    revision = models.IntegerField(default=1)
    title = models.CharField(max_length=200)
    base_number = models.IntegerField()
    values = models.JSONField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="policy_drafts")
    version = models.OneToOneField(PolicyVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="draft")
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ["-changed_at", "-pk"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=DraftState.values), name="policies_draft_state"),
            models.CheckConstraint(condition=~Q(title=""), name="policies_draft_titled"),
            models.CheckConstraint(
                condition=Q(state="in_force", version__isnull=False) | (~Q(state="in_force") & Q(version=None)),
                name="policies_draft_in_force_whole",
            ),
        ]

    def __str__(self) -> str:
        return self.title
