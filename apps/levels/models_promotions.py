"""Promotions to L3 and L4, the evidence that each was decided on, approvals and objections."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from apps.accounts.models import Organisation
from apps.core.ids import public_id
from apps.levels.bundle import unpacked
from apps.levels.enums import Form, PromotionState
from apps.levels.promotion_policy import PROMOTED_TO
from apps.platforms.models import Repository
from apps.platforms.policy import LEVELS


class Promotion(models.Model):
    """A repository is to rise to L3 or L4. `revision` counts what an approval has to have seen: evidence that was
    frozen anew or fell, and objections. `event_seq`: the decision that raised it, or that waits for upstream's file.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="promotions")
    target = models.SmallIntegerField()
    state = models.CharField(max_length=20, choices=PromotionState.choices, default=PromotionState.OPEN)
    form = models.CharField(max_length=20, choices=Form.choices, default=Form.LAZY)
    device = models.CharField(max_length=38, blank=True)
    reason = models.CharField(max_length=2_000)
    revision = models.PositiveIntegerField(default=1)
    opened_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="promotions")
    opened_at = models.DateTimeField()
    objections_until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    end_words = models.CharField(max_length=2_000, blank=True)
    event_seq = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["-opened_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["repository"], condition=Q(state="open"), name="levels_promotion_open_once"
            ),
            models.CheckConstraint(condition=Q(target__in=PROMOTED_TO), name="levels_promotion_target"),
            models.CheckConstraint(condition=Q(state__in=PromotionState.values), name="levels_promotion_state"),
            models.CheckConstraint(condition=Q(form__in=Form.values), name="levels_promotion_form"),
            models.CheckConstraint(condition=~Q(reason=""), name="levels_promotion_reason"),
            models.CheckConstraint(
                condition=Q(state="open", ended_at=None) | (~Q(state="open") & Q(ended_at__isnull=False)),
                name="levels_promotion_ended",
            ),
            models.CheckConstraint(
                condition=~Q(state="approved") | Q(event_seq__isnull=False), name="levels_promotion_decided"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository} to {self.target_code}"

    @property
    def target_code(self) -> str:
        return LEVELS[self.target].code

    @property
    def is_open(self) -> bool:
        return self.state == PromotionState.OPEN


class EvidenceBundle(models.Model):
    """Evidence as it was frozen (levels/bundle.py). Rows are never changed and never deleted: PostgreSQL refuses it.

    `content` is the canonical text, compressed; `bytes` its size before. `policy_number` and `frozen_at` repeat it.
    """

    promotion = models.ForeignKey(Promotion, on_delete=models.PROTECT, related_name="bundles")
    number = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64, unique=True)
    content = models.BinaryField()
    bytes = models.BigIntegerField()
    policy_number = models.IntegerField()
    frozen_at = models.DateTimeField()

    class Meta:
        ordering = ["promotion", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["promotion", "number"], name="levels_bundle_number"),
            models.CheckConstraint(condition=Q(sha256__regex=r"^[0-9a-f]{64}$"), name="levels_bundle_hash"),
        ]

    def __str__(self) -> str:
        return f"evidence {self.number} of {self.promotion}"

    def opened(self) -> dict[str, Any]:
        """The bundle itself."""
        return unpacked(bytes(self.content))


class Approval(models.Model):
    """A maintainer's yes, which counts while the promotion is at the `revision` that they saw. Never changed. `note`:
    what they say about what the bundle notes. `organisation`: theirs at that moment."""

    promotion = models.ForeignKey(Promotion, on_delete=models.PROTECT, related_name="approvals")
    bundle = models.ForeignKey(EvidenceBundle, on_delete=models.PROTECT, related_name="approvals")
    revision = models.PositiveIntegerField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="approvals")
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, null=True, blank=True)
    reason = models.CharField(max_length=2_000)
    note = models.CharField(max_length=2_000, blank=True)
    at = models.DateTimeField()
    event_seq = models.BigIntegerField(unique=True)

    class Meta:
        ordering = ["promotion", "at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["promotion", "by", "revision"], name="levels_approval_once"),
            models.CheckConstraint(condition=~Q(reason=""), name="levels_approval_reason"),
        ]

    def __str__(self) -> str:
        return f"{self.by} approves {self.promotion}"


class Objection(models.Model):
    """A maintainer's objection, which cites a criterion of the level. Never changed."""

    promotion = models.ForeignKey(Promotion, on_delete=models.PROTECT, related_name="objections")
    criterion = models.CharField(max_length=60)
    words = models.CharField(max_length=2_000)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="objections")
    at = models.DateTimeField()
    event_seq = models.BigIntegerField(unique=True)

    class Meta:
        ordering = ["promotion", "at", "pk"]
        constraints = [
            models.CheckConstraint(condition=~Q(words="") & ~Q(criterion=""), name="levels_objection_cites"),
        ]

    def __str__(self) -> str:
        return f"{self.by} objects to {self.promotion}: {self.criterion}"
