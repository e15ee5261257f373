"""The protocol's rows: a webhook's delivery, its dispatches to repositories, the jobs that answer, their callbacks."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import MD5

from apps.core.ids import public_id
from apps.platforms.models import Repository
from apps.relay.enums import Answer, Bucket, DeliveryState, DispatchState, Flag, JobStatus
from apps.relay.policy import trust_of


class Delivery(models.Model):
    """One webhook of the upstream repository, stored once however often GitHub sends it.

    `body` is the raw JSON text (empty when ignored); the columns beside it are what the hub itself reads.
    """

    delivery_id = models.CharField(max_length=100, unique=True)
    event = models.CharField(max_length=40)
    action = models.CharField(max_length=40, blank=True)
    state = models.CharField(max_length=20, choices=DeliveryState.choices)
    received_at = models.DateTimeField()
    # GitHub sent it first while the hub was out, and again when asked (apps/relay/missed.py).
    is_late = models.BooleanField(default=False)
    body = models.TextField(blank=True)
    pr_number = models.BigIntegerField(null=True, blank=True)
    title = models.CharField(max_length=300, blank=True)
    head_sha = models.CharField(max_length=40, blank=True)
    ref = models.CharField(max_length=300, blank=True)

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [
            models.CheckConstraint(condition=Q(state__in=DeliveryState.values), name="relay_delivery_state"),
        ]
        indexes = [
            models.Index(fields=["received_at"], condition=Q(state="received"), name="relay_delivery_waiting"),
            models.Index(fields=["pr_number", "-received_at"], name="relay_delivery_pr"),
            models.Index(fields=["head_sha"], opclasses=["varchar_pattern_ops"], name="relay_delivery_commit"),
        ]

    def __str__(self) -> str:
        return self.delivery_id


class Dispatch(models.Model):
    """One delivery sent, or to be sent, to one repository: the row exists before the request leaves."""

    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="dispatches")
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="dispatches")
    state = models.CharField(max_length=20, choices=DispatchState.choices, default=DispatchState.PENDING)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)
    attempts = models.IntegerField(default=0)
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        verbose_name_plural = "dispatches"
        constraints = [
            models.UniqueConstraint(fields=["delivery", "repository"], name="relay_dispatch_once"),
            models.CheckConstraint(condition=Q(state__in=DispatchState.values), name="relay_dispatch_state"),
            models.CheckConstraint(
                condition=Q(state="sent", sent_at__isnull=False) | (~Q(state="sent") & Q(sent_at=None)),
                name="relay_dispatch_sent_at",
            ),
        ]
        indexes = [
            models.Index(
                fields=["changed_at"], condition=Q(state__in=["pending", "sending"]), name="relay_dispatch_waiting"
            ),
            models.Index(fields=["repository", "-created_at"], name="relay_dispatch_recent"),
        ]

    def __str__(self) -> str:
        return f"{self.delivery} to {self.repository}"


class Job(models.Model):
    """One CI job of a downstream repository, as its callbacks tell it.

    Identity: (repository, delivery_id, run_id, run_attempt, workflow, job_name, leg). `leg` keeps apart the legs of a
    matrix that share a job name: the declared leg, else the check run's id, else ''. Reported times are the
    downstream's clock; `first_seen_at` and `completed_at` are the hub's. `revision` guards every update.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="jobs")
    dispatch = models.ForeignKey(Dispatch, on_delete=models.PROTECT, null=True, blank=True, related_name="jobs")
    delivery_id = models.CharField(max_length=200)
    event_type = models.CharField(max_length=40)
    run_id = models.CharField(max_length=100)
    run_attempt = models.IntegerField()
    workflow = models.CharField(max_length=300)
    job_name = models.CharField(max_length=300, blank=True)
    leg = models.CharField(max_length=200, blank=True)
    check_run_id = models.CharField(max_length=100, blank=True)
    url = models.CharField(max_length=2000, blank=True)
    artifact_url = models.CharField(max_length=2000, blank=True)
    head_sha = models.CharField(max_length=40, blank=True)
    pr_number = models.BigIntegerField(null=True, blank=True)
    status = models.CharField(max_length=20, choices=JobStatus.choices)
    conclusion = models.CharField(max_length=40, blank=True)
    bucket = models.CharField(max_length=20, choices=Bucket.choices)
    flags = ArrayField(models.CharField(max_length=20), default=list, blank=True)
    passed = models.IntegerField(null=True, blank=True)
    failed = models.IntegerField(null=True, blank=True)
    skipped = models.IntegerField(null=True, blank=True)
    total = models.IntegerField(null=True, blank=True)
    reported_started_at = models.DateTimeField(null=True, blank=True)
    reported_completed_at = models.DateTimeField(null=True, blank=True)
    # Seconds that the relay measured, where it passed the job on or its history was imported.
    relay_queue_seconds = models.IntegerField(null=True, blank=True)
    relay_execution_seconds = models.IntegerField(null=True, blank=True)
    first_seen_at = models.DateTimeField()
    start_seen_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    revision = models.IntegerField(default=0)

    class Meta:
        constraints = [
            # Long names enter the index as digests: an index row holds 2,704 bytes at most.
            models.UniqueConstraint(
                F("repository"),
                MD5("delivery_id"),
                F("run_id"),
                F("run_attempt"),
                MD5("workflow"),
                MD5("job_name"),
                MD5("leg"),
                name="relay_job_identity",
            ),
            models.CheckConstraint(condition=Q(status__in=JobStatus.values), name="relay_job_status"),
            models.CheckConstraint(
                condition=Q(status="completed", completed_at__isnull=False)
                & ~Q(conclusion="")
                & ~Q(bucket="in_progress")
                | Q(status="in_progress", completed_at=None, conclusion="", bucket="in_progress"),
                name="relay_job_end_whole",
            ),
            models.CheckConstraint(condition=Q(bucket__in=Bucket.values), name="relay_job_bucket"),
            models.CheckConstraint(condition=Q(run_attempt__gte=1), name="relay_job_attempt"),
        ]
        indexes = [
            models.Index(fields=["repository", "-first_seen_at"], name="relay_job_recent"),
            models.Index(fields=["first_seen_at"], name="relay_job_seen"),
            models.Index(fields=["head_sha"], opclasses=["varchar_pattern_ops"], name="relay_job_commit"),
            models.Index(fields=["pr_number"], condition=Q(dispatch=None), name="relay_job_relayed_pr"),
        ]

    def __str__(self) -> str:
        return f"{self.repository} {self.workflow} / {self.job_name}"

    @property
    def short_name(self) -> str:
        """What tells it apart from the other jobs of its run."""
        return self.job_name or self.workflow

    @property
    def flag_labels(self) -> list[str]:
        return [str(Flag(flag).label) for flag in self.flags]

    @property
    def conclusion_trust(self) -> str:
        return trust_of(self.bucket)["conclusion"]

    @property
    def queue_seconds(self) -> float | None:
        """From GitHub's acceptance of the dispatch to the first callback, by the hub's clock; first attempts only. What
        the relay measured where the hub did not dispatch."""
        if self.run_attempt == 1 and self.dispatch is None and self.relay_queue_seconds is not None:
            return float(self.relay_queue_seconds)
        sent_at = self.dispatch.sent_at if self.dispatch else None
        if self.run_attempt > 1 or self.start_seen_at is None or sent_at is None or self.is_late:
            return None
        return max(0.0, (self.start_seen_at - sent_at).total_seconds())

    @property
    def is_late(self) -> bool:
        """Whether its webhook came late, by the hub's fault: then its waiting is not the downstream's."""
        return self.dispatch is not None and self.dispatch.delivery.is_late

    @property
    def execution_seconds(self) -> float | None:
        """From the first callback to the last, by the hub's clock."""
        if self.start_seen_at is None or self.completed_at is None:
            return None
        return max(0.0, (self.completed_at - self.start_seen_at).total_seconds())

    @property
    def reported_seconds(self) -> float | None:
        """How long it ran by its own clock; None when a time is missing or they run backwards."""
        if self.reported_started_at is None or self.reported_completed_at is None:
            return None
        seconds = (self.reported_completed_at - self.reported_started_at).total_seconds()
        return seconds if seconds >= 0 else None


class Callback(models.Model):
    """One callback that was accepted, kept privately, or refused as conflicting. Duplicates leave no row.

    `job` is empty for private ones (the repository was at L1). `report` is what the callback said, field by field;
    `claims` is what its token proved. The echoed payload is kept as its digest only.
    """

    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="callbacks")
    job = models.ForeignKey(Job, on_delete=models.CASCADE, null=True, blank=True, related_name="callbacks")
    received_at = models.DateTimeField()
    answer = models.CharField(max_length=20, choices=Answer.choices)
    report = models.JSONField()
    claims = models.JSONField()
    body_digest = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(answer__in=Answer.values), name="relay_callback_answer"),
            models.CheckConstraint(
                condition=Q(answer="ignored", job=None) | (~Q(answer="ignored") & Q(job__isnull=False)),
                name="relay_callback_private",
            ),
            # A private callback sent again, or a conflicting one, is one row.
            models.UniqueConstraint(
                fields=["repository", "answer", "body_digest"],
                condition=Q(answer__in=["ignored", "conflict"]),
                name="relay_callback_kept_once",
            ),
        ]
        indexes = [
            models.Index(
                fields=["repository", "-received_at"], condition=Q(job=None), name="relay_callback_private_recent"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository} {self.answer} {self.received_at:%Y-%m-%d %H:%M:%S}"


class Rejection(models.Model):
    """How often one caller was refused for one reason. Never holds token text.

    `issuer` and the ids come from a verified token; for a token that could not be verified the issuer is one of the
    configured ones or '' and the ids are ''.
    """

    issuer = models.CharField(max_length=200, blank=True)
    repository_claim = models.CharField(max_length=140, blank=True)
    repository_id_claim = models.CharField(max_length=20, blank=True)
    owner_id_claim = models.CharField(max_length=20, blank=True)
    code = models.CharField(max_length=40)
    reason = models.CharField(max_length=200, blank=True)
    repository = models.ForeignKey(
        Repository, on_delete=models.CASCADE, null=True, blank=True, related_name="rejections"
    )
    count = models.BigIntegerField(default=1)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()

    class Meta:
        ordering = ["-last_seen"]
        constraints = [
            models.UniqueConstraint(
                fields=["issuer", "repository_claim", "repository_id_claim", "owner_id_claim", "code", "reason"],
                name="relay_rejection_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.code} × {self.count}"


# Django looks for models here.
from apps.relay.models_adoption import (  # noqa: E402
    CheckLook,
    Comparison,
    Difference,
    Forward,
    Intent,
    SeenCheck,
)
from apps.relay.models_graph import Commit, GraphState, MainPush, MergeBase  # noqa: E402
from apps.relay.models_missed import DeliveryLog, HubOutage, MissedDelivery, MissedState  # noqa: E402

__all__ = [
    "Callback",
    "CheckLook",
    "Commit",
    "Comparison",
    "Delivery",
    "DeliveryLog",
    "Difference",
    "Dispatch",
    "Forward",
    "GraphState",
    "HubOutage",
    "Intent",
    "Job",
    "MainPush",
    "MergeBase",
    "MissedDelivery",
    "MissedState",
    "Rejection",
    "SeenCheck",
]
