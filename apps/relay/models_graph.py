"""The order of upstream's main, and where each pull request left it."""

from django.db import models
from django.db.models import Q


class GraphState(models.TextChoices):
    PENDING = "pending", "pending"
    KNOWN = "known", "known"
    UNKNOWN = "unknown", "unknown"


class Commit(models.Model):
    """A commit that is or was on main.

    `position` counts along main from the first commit that the hub placed (0; earlier ones are negative); None: it is
    not on main, because a forced push took it off. `parent_sha` is '' where the hub was not told.
    """

    sha = models.CharField(max_length=40, unique=True)
    parent_sha = models.CharField(max_length=40, blank=True)
    position = models.IntegerField(null=True, blank=True)
    placed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["position"], name="relay_commit_position")]
        indexes = [models.Index(fields=["parent_sha"], condition=~Q(parent_sha=""), name="relay_commit_parent")]

    def __str__(self) -> str:
        return self.sha


class Question(models.Model):
    """Something about the graph that is answered from what came, or by GitHub, and tried again until it is unknown."""

    state = models.CharField(max_length=20, choices=GraphState.choices, default=GraphState.PENDING)
    attempts = models.IntegerField(default=0)
    due_at = models.DateTimeField()
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        abstract = True


class MainPush(Question):
    """A push to main, to be placed."""

    delivery = models.OneToOneField("relay.Delivery", on_delete=models.CASCADE, related_name="main_push")
    before = models.CharField(max_length=40)
    after = models.CharField(max_length=40)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(state__in=GraphState.values), name="relay_push_state")]
        indexes = [models.Index(fields=["due_at"], condition=Q(state="pending"), name="relay_push_waiting")]

    def __str__(self) -> str:
        return f"{self.before}..{self.after}"


class MergeBase(Question):
    """Where a head of a pull request left main. `base_sha` is '' until it is known, at `known_at` (None of a known one:
    from before that was noted)."""

    pr_number = models.BigIntegerField()
    head_sha = models.CharField(max_length=40)
    base_sha = models.CharField(max_length=40, blank=True)
    known_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pr_number", "head_sha"], name="relay_merge_base_once"),
            models.CheckConstraint(condition=Q(state__in=GraphState.values), name="relay_merge_base_state"),
            models.CheckConstraint(condition=Q(state="known") ^ Q(base_sha=""), name="relay_merge_base_whole"),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(state="pending"), name="relay_merge_base_waiting"),
            models.Index(fields=["head_sha"], name="relay_merge_base_head"),
            models.Index(fields=["base_sha"], condition=~Q(base_sha=""), name="relay_merge_base_base"),
        ]

    def __str__(self) -> str:
        return f"#{self.pr_number} {self.head_sha}"
