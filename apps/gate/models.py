"""What the gate has answered, the overrides that maintainers granted, and the trips of the breaker."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from apps.core.ids import public_id
from apps.gate.enums import Closed, TripKind, Verdict
from apps.platforms.models import Repository


class StoredVerdict(models.Model):
    """One answer of the gate about a commit, with its reasons. Rows are appended where the answer or its inputs have
    changed, and never changed: the newest at or before a moment is what the gate said then.

    `inputs_hash`: SHA-256 over the canonical JSON of the facts and of the policy's rows for the gate.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    sha = models.CharField(max_length=40)
    pr_number = models.BigIntegerField(null=True, blank=True)
    at = models.DateTimeField()
    verdict = models.CharField(max_length=20, choices=Verdict.choices)
    requirements = models.JSONField()
    inputs_hash = models.CharField(max_length=64)
    policy_number = models.IntegerField()

    class Meta:
        ordering = ["-at", "-pk"]
        constraints = [
            models.CheckConstraint(condition=Q(verdict__in=Verdict.values), name="gate_verdict_word"),
            models.CheckConstraint(condition=~Q(sha="") & ~Q(inputs_hash=""), name="gate_verdict_whole"),
        ]
        indexes = [
            models.Index(fields=["sha", "pr_number", "-at"], name="gate_verdict_commit"),
            models.Index(fields=["at"], condition=Q(verdict="pending"), name="gate_verdict_waiting"),
        ]

    def __str__(self) -> str:
        return f"{self.sha[:12]} {self.verdict}"


class Override(models.Model):
    """A maintainer lets a blocking repository's part of a pull request pass, or all parts (no repository), from
    `from_at` until `until`. With a `sha` for that commit alone; without for every head of the pull request."""

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    pr_number = models.BigIntegerField()
    sha = models.CharField(max_length=40, blank=True)
    repository = models.ForeignKey(
        Repository, on_delete=models.PROTECT, null=True, blank=True, related_name="overrides"
    )
    reason = models.CharField(max_length=2_000)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="overrides")
    by_label = models.CharField(max_length=200)
    from_at = models.DateTimeField()
    until = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    withdrawn_by = models.CharField(max_length=200, blank=True)
    withdrawal = models.CharField(max_length=2_000, blank=True)
    event_seq = models.BigIntegerField(unique=True)

    class Meta:
        ordering = ["-from_at", "-pk"]
        constraints = [
            models.CheckConstraint(condition=~Q(reason=""), name="gate_override_reason"),
            models.CheckConstraint(condition=Q(until__gt=F("from_at")), name="gate_override_forward"),
            models.CheckConstraint(
                condition=Q(withdrawn_at=None, withdrawn_by="", withdrawal="")
                | Q(withdrawn_at__gte=F("from_at")) & ~Q(withdrawn_by="") & ~Q(withdrawal=""),
                name="gate_override_withdrawal_whole",
            ),
        ]
        indexes = [models.Index(fields=["pr_number", "until"], name="gate_override_of_pr")]

    def __str__(self) -> str:
        return f"#{self.pr_number} {self.repository or 'all parts'}"

    @property
    def ended_at(self) -> object:
        """When it stops to hold, or did."""
        return self.withdrawn_at or self.until


class BreakerTrip(models.Model):
    """A blocking repository lost its say from `opened_at` until `closed_at` (None: still), by the hub itself. `rows`:
    what it stands on, as {kind, label, url}. Since `overturned_at`, by an appeal, it counts for nothing any more."""

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="breaker_trips")
    kind = models.CharField(max_length=20, choices=TripKind.choices)
    why = models.CharField(max_length=500)
    rows = models.JSONField(default=list)
    policy_number = models.IntegerField()
    opened_at = models.DateTimeField()
    event_seq = models.BigIntegerField(unique=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_by = models.CharField(max_length=20, choices=Closed.choices, blank=True)
    closed_why = models.CharField(max_length=2_000, blank=True)
    overturned_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-opened_at", "-pk"]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=TripKind.values), name="gate_trip_kind"),
            models.CheckConstraint(
                condition=Q(closed_at=None, closed_by="", closed_why="")
                | Q(closed_at__gte=F("opened_at"), closed_by__in=Closed.values) & ~Q(closed_why=""),
                name="gate_trip_closed_whole",
            ),
            models.UniqueConstraint(fields=["repository"], condition=Q(closed_at=None), name="gate_trip_one_open"),
        ]
        indexes = [models.Index(fields=["repository", "-opened_at"], name="gate_trip_of")]

    def __str__(self) -> str:
        return f"{self.repository}: {self.kind}"


class KeptReplay(models.Model):
    """The newest replay of a repository over so many days that a page asked for, whole, as the API tells it: for a
    while the next reader is told the same. Nothing is decided by it."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="+")
    days = models.IntegerField()
    made_at = models.DateTimeField()
    said = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["repository", "days"], name="gate_kept_replay_once")]

    def __str__(self) -> str:
        return f"{self.repository} over {self.days} days, {self.made_at:%Y-%m-%d %H:%M}"
