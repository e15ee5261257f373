"""Rows of a hub that is being adopted (apps/relay/modes.py): what the relay posted and is passed on, what the hub would
have done, what others show on GitHub, and where the two differ."""

from django.db import models
from django.db.models import Q

from apps.platforms.models import Repository
from apps.relay.adoption import DifferenceKind, ForwardState


class Forward(models.Model):
    """One body that the relay posted, on its way to the dashboard that stood there before. `body` is its bytes as they
    came; it goes when it was sent, and a week after it was given up. `answer` is what the hub itself made of it."""

    repository_name = models.CharField(max_length=140)
    delivery_id = models.CharField(max_length=200)
    # Posts of one job reach the dashboard in the order in which they came.
    order_key = models.CharField(max_length=64)
    body = models.BinaryField()
    answer = models.CharField(max_length=20)
    detail = models.CharField(max_length=500, blank=True)
    received_at = models.DateTimeField()
    state = models.CharField(max_length=20, choices=ForwardState.choices)
    attempts = models.IntegerField(default=0)
    changed_at = models.DateTimeField()
    due_at = models.DateTimeField()
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=ForwardState.values), name="relay_forward_state"),
        ]
        indexes = [
            models.Index(
                fields=["due_at"], condition=Q(state__in=["pending", "sending"]), name="relay_forward_waiting"
            ),
            models.Index(
                fields=["order_key", "id"],
                condition=Q(state__in=["pending", "sending"]),
                name="relay_forward_in_order",
            ),
            models.Index(fields=["-received_at"], name="relay_forward_recent"),
        ]

    def __str__(self) -> str:
        return f"{self.repository_name} {self.delivery_id}"


class Intent(models.Model):
    """A dispatch that a hub in shadow mode would have sent: never sent, only compared."""

    delivery = models.ForeignKey("relay.Delivery", on_delete=models.CASCADE, related_name="intents")
    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="intents")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["delivery", "repository"], name="relay_intent_once")]

    def __str__(self) -> str:
        return f"{self.delivery} to {self.repository}"


class CheckLook(models.Model):
    """When GitHub was asked which check runs a commit shows. `error` is why it could not say, '' where it did."""

    sha = models.CharField(max_length=40, unique=True)
    looked_at = models.DateTimeField()
    error = models.CharField(max_length=500, blank=True)

    def __str__(self) -> str:
        return self.sha


class SeenCheck(models.Model):
    """The newest check run of one name on one commit, as GitHub shows it. `app_id` is whose it is."""

    sha = models.CharField(max_length=40)
    name = models.CharField(max_length=1000)
    app_id = models.BigIntegerField()
    app_name = models.CharField(max_length=100, blank=True)
    # An App may be set up here by this instead of its number.
    app_client_id = models.CharField(max_length=100, blank=True)
    github_id = models.BigIntegerField()
    status = models.CharField(max_length=20)
    conclusion = models.CharField(max_length=40, blank=True)
    started_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["sha", "app_id", "name"], name="relay_seen_check_once")]
        indexes = [models.Index(fields=["name", "-started_at"], name="relay_seen_check_name")]

    def __str__(self) -> str:
        return f"{self.name} on {self.sha}"


class Comparison(models.Model):
    """When a delivery's intents were last held against what was posted and shown."""

    delivery = models.OneToOneField("relay.Delivery", on_delete=models.CASCADE, related_name="comparison")
    compared_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["compared_at"], name="relay_comparison_oldest")]

    def __str__(self) -> str:
        return str(self.delivery)


class Difference(models.Model):
    """One thing in which the hub would have done otherwise than the relay did, or that cannot be observed.

    `name` is the check run's or the job's; `ours` and `theirs` are words for people. Gone when it is no more.
    """

    kind = models.CharField(max_length=30, choices=DifferenceKind.choices)
    # Not a key: the webhook may never have come here.
    delivery_id = models.CharField(max_length=200)
    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="differences")
    name = models.CharField(max_length=1000, blank=True)
    ours = models.CharField(max_length=200)
    theirs = models.CharField(max_length=200)
    found_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=DifferenceKind.values), name="relay_difference_kind"),
            models.UniqueConstraint(fields=["delivery_id", "repository", "kind", "name"], name="relay_difference_once"),
        ]
        indexes = [models.Index(fields=["kind", "-found_at"], name="relay_difference_recent")]

    def __str__(self) -> str:
        return f"{self.kind} {self.delivery_id}"
