"""The protocol's rows: a webhook's delivery, its dispatches to repositories, the jobs that answer, their callbacks."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import MD5

from apps.core.backoff import ATTEMPTS_MAX
from apps.core.ids import public_id
from apps.platforms.models import Repository
from apps.relay.enums import Answer, Bucket, DeliveryState, DispatchState, Flag, JobStatus, Provenance, Rule, Verdict
from apps.relay.policy import LIMIT_MAX_SECONDS, LIMIT_MIN_SECONDS, trust_of


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
            models.Index(fields=["-received_at"], name="relay_delivery_recent"),
            models.Index(fields=["head_sha"], opclasses=["varchar_pattern_ops"], name="relay_delivery_commit"),
        ]

    def __str__(self) -> str:
        return self.delivery_id


class Dispatch(models.Model):
    """One delivery sent, or to be sent, to one repository: the row exists before the request leaves.

    `next_attempt_at` is when a pending one may be sent; a pending one without it waits until one in flight has ended.
    `attempts` only grows: sending a given-up one again raises `attempts_allowed`. `woken_at`: when a task was last
    asked for. `error` is what kept it back last.
    """

    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="dispatches")
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="dispatches")
    state = models.CharField(max_length=20, choices=DispatchState.choices, default=DispatchState.PENDING)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)
    attempts = models.IntegerField(default=0)
    attempts_allowed = models.IntegerField(default=ATTEMPTS_MAX)
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    woken_at = models.DateTimeField(null=True, blank=True)
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
            models.CheckConstraint(
                condition=Q(state="pending") | Q(next_attempt_at=None), name="relay_dispatch_next_only_pending"
            ),
            models.CheckConstraint(
                condition=Q(attempts__lte=F("attempts_allowed")), name="relay_dispatch_attempts_allowed"
            ),
        ]
        indexes = [
            models.Index(
                fields=["changed_at"], condition=Q(state__in=["pending", "sending"]), name="relay_dispatch_waiting"
            ),
            models.Index(fields=["repository", "-created_at"], name="relay_dispatch_recent"),
            models.Index(fields=["repository", "sent_at"], condition=Q(state="sent"), name="relay_dispatch_in_flight"),
        ]

    def __str__(self) -> str:
        return f"{self.delivery} to {self.repository}"

    @property
    def is_waiting_for_place(self) -> bool:
        return self.state == DispatchState.PENDING and self.next_attempt_at is None


class Omission(models.Model):
    """A delivery that a listed repository was not sent, and why. There is no dispatch then: no figure counts it."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="omissions")
    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="omissions")
    rule = models.CharField(max_length=20, choices=Rule.choices)
    sentence = models.CharField(max_length=500)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["delivery", "repository"], name="relay_omission_once"),
            models.CheckConstraint(condition=Q(rule__in=Rule.values), name="relay_omission_rule"),
        ]

    def __str__(self) -> str:
        return f"{self.delivery} not to {self.repository}: {self.rule}"


class Job(models.Model):
    """One CI job of a downstream repository, as its callbacks tell it.

    Identity: (repository, delivery_id, run_id, run_attempt, workflow, job_name, leg). `leg` keeps apart the legs of a
    matrix that share a job name: the declared leg, else the check run's id, else ''; `joined_leg` is that of an end
    which joined the only open leg (flag `joined`). Reported times are the downstream's clock; `first_seen_at` and
    `completed_at` are the hub's. `revision` guards every update.

    `verdict` and `github_said` are what GitHub's record of the run says; `look_up_at` is when it is asked (next), after
    `lookups` times; `judged_at` is when the hub itself last decided something about the job.
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
    provenance = models.CharField(max_length=20, choices=Provenance.choices, blank=True)
    joined_leg = models.CharField(max_length=200, blank=True)
    verdict = models.CharField(max_length=20, choices=Verdict.choices, blank=True)
    github_said = models.CharField(max_length=300, blank=True)
    look_up_at = models.DateTimeField(null=True, blank=True)
    lookups = models.SmallIntegerField(default=0)
    judged_at = models.DateTimeField(null=True, blank=True)
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
            models.CheckConstraint(
                condition=Q(provenance="") | Q(provenance__in=Provenance.values), name="relay_job_provenance"
            ),
            models.CheckConstraint(
                condition=Q(verdict="") | Q(verdict__in=Verdict.values, status="completed"), name="relay_job_verdict"
            ),
            models.CheckConstraint(
                condition=~Q(verdict="contradicted") | Q(bucket="contradicted"), name="relay_job_never_green"
            ),
            models.CheckConstraint(
                condition=~Q(flags__contains=["inferred"]) | Q(bucket="timed_out", verdict=""),
                name="relay_job_inferred_end",
            ),
        ]
        indexes = [
            models.Index(fields=["repository", "-first_seen_at"], name="relay_job_recent"),
            models.Index(fields=["first_seen_at"], name="relay_job_seen"),
            models.Index(fields=["head_sha"], opclasses=["varchar_pattern_ops"], name="relay_job_commit"),
            models.Index(fields=["first_seen_at"], condition=Q(status="in_progress"), name="relay_job_open"),
            models.Index(fields=["head_sha"], condition=Q(dispatch=None), name="relay_job_undispatched"),
            models.Index(fields=["look_up_at"], condition=Q(look_up_at__isnull=False), name="relay_job_look_up"),
            models.Index(
                fields=["repository", "-judged_at"], condition=Q(judged_at__isnull=False), name="relay_job_judged"
            ),
            models.Index(fields=["pr_number"], condition=Q(dispatch=None), name="relay_job_relayed_pr"),
            # What the API's list of jobs looks for.
            models.Index(fields=["delivery_id", "-first_seen_at"], name="relay_job_of_delivery"),
            models.Index(fields=["run_id", "-first_seen_at"], name="relay_job_of_run"),
            models.Index(
                fields=["pr_number", "-first_seen_at"],
                condition=Q(pr_number__isnull=False),
                name="relay_job_of_pr",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository} {self.workflow} / {self.job_name}"

    @property
    def short_name(self) -> str:
        """What tells it apart from the other jobs of its run."""
        return self.job_name or self.workflow

    @property
    def is_held(self) -> bool:
        """Sent under a new owner that nobody has accepted: outside every figure."""
        return Flag.HELD in self.flags

    @property
    def flag_labels(self) -> list[str]:
        return [str(Flag(flag).label) for flag in self.flags]

    @property
    def trust(self) -> dict[str, str]:
        """How far each of its figures can be trusted."""
        return trust_of(self.bucket, verdict=self.verdict, failed=self.failed, flags=self.flags)

    @property
    def conclusion_trust(self) -> str:
        return self.trust["conclusion"]

    @property
    def is_inferred(self) -> bool:
        return Flag.INFERRED in self.flags

    @property
    def start_came_late(self) -> bool:
        """Whether its start was heard after its end: then nobody knows when it began."""
        return Flag.LATE_START in self.flags

    @property
    def queue_seconds(self) -> float | None:
        """From GitHub's acceptance of the dispatch to the first callback, by the hub's clock; first attempts only. What
        the relay measured where the hub did not dispatch."""
        if self.start_came_late:
            return None
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
        """From the first callback to the last, by the hub's clock; none where the end was inferred or came first."""
        if self.start_seen_at is None or self.completed_at is None or self.is_inferred or self.start_came_late:
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
    `claims` is what its token proved, `token_id` is that token's (issuer and jti): a token speaks for one body. The
    echoed payload is kept as its digest only.
    """

    # Its index is the one below, which begins with it.
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="callbacks", db_index=False)
    job = models.ForeignKey(Job, on_delete=models.CASCADE, null=True, blank=True, related_name="callbacks")
    received_at = models.DateTimeField()
    answer = models.CharField(max_length=20, choices=Answer.choices)
    report = models.JSONField()
    claims = models.JSONField()
    body_digest = models.CharField(max_length=64)
    token_id = models.UUIDField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["token_id"], name="relay_callback_token_once"),
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
            models.Index(fields=["repository", "-received_at"], name="relay_callback_recent"),
            models.Index(
                fields=["repository", "-received_at"], condition=Q(job=None), name="relay_callback_private_recent"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository} {self.answer} {self.received_at:%Y-%m-%d %H:%M:%S}"


class Rejection(models.Model):
    """How often one caller was refused for one reason. Never holds token text.

    `issuer` and the ids come from a verified token; for a token that could not be verified the issuer is one of the
    configured ones or '' and the ids are ''. Of a Buildkite token the ids are its pipeline's and organisation's.
    """

    issuer = models.CharField(max_length=200, blank=True)
    repository_claim = models.CharField(max_length=140, blank=True)
    repository_id_claim = models.CharField(max_length=40, blank=True)
    owner_id_claim = models.CharField(max_length=40, blank=True)
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


class TimeLimit(models.Model):
    """How long a repository's jobs may stay silent before the hub ends them: those of one name, or ('') all others."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="time_limits")
    job_name = models.CharField(max_length=300, blank=True)
    seconds = models.IntegerField()
    declared_at = models.DateTimeField()

    class Meta:
        ordering = ["job_name"]
        constraints = [
            models.UniqueConstraint(fields=["repository", "job_name"], name="relay_time_limit_once"),
            models.CheckConstraint(
                condition=Q(seconds__gte=LIMIT_MIN_SECONDS, seconds__lte=LIMIT_MAX_SECONDS),
                name="relay_time_limit_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository} {self.job_name or 'all jobs'}: {self.seconds} s"


class CommitLookup(models.Model):
    """Whether upstream knows a commit that a nightly or periodic run names; GitHub is asked once."""

    sha = models.CharField(max_length=40, unique=True)
    is_known = models.BooleanField()
    looked_up_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.sha[:12]} {'known' if self.is_known else 'unknown'}"


# Django looks for models here.
from apps.relay.models_acknowledge import Acknowledgement  # noqa: E402
from apps.relay.models_adoption import (  # noqa: E402
    CheckLook,
    Comparison,
    Difference,
    Forward,
    Intent,
    SeenCheck,
)
from apps.relay.models_declared import DeclaredOutcome  # noqa: E402
from apps.relay.models_graph import Commit, GraphState, MainPush, MergeBase  # noqa: E402
from apps.relay.models_missed import DeliveryLog, HubOutage, MissedDelivery, MissedState, UnreadLog  # noqa: E402

__all__ = [
    "Acknowledgement",
    "Callback",
    "CheckLook",
    "Commit",
    "CommitLookup",
    "Comparison",
    "DeclaredOutcome",
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
    "Omission",
    "Rejection",
    "SeenCheck",
    "TimeLimit",
    "UnreadLog",
]
