"""What the hub says on upstream's pull requests: who asks for it, what it should say, what GitHub shows."""

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from apps.checks.enums import CheckStatus, Scope, SendState
from apps.checks.policy import MOST_TITLE
from apps.core.ids import public_id
from apps.platforms.models import Repository
from apps.relay.checknames import MOST_NAME
from apps.relay.enums import Conclusion
from apps.relay.models import Job


class PullRequest(models.Model):
    """One head of a pull request as GitHub's newest webhook about it tells it: whether it is open, and the devices that
    its `ciflow/crcr/<device>` labels name (lower case). What downstreams echo of labels is never read."""

    number = models.BigIntegerField()
    head_sha = models.CharField(max_length=40)
    is_open = models.BooleanField()
    devices = ArrayField(models.CharField(max_length=60), default=list, blank=True)
    told_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["head_sha", "number"], name="checks_pullrequest_once")]

    def __str__(self) -> str:
        return f"#{self.number} at {self.head_sha[:7]}"


class Outgoing(models.Model):
    """A row of an outbox: it exists before the request leaves, and every step of `state` is a compare-and-set."""

    state = models.CharField(max_length=20, choices=SendState.choices, default=SendState.PENDING)
    attempts = models.IntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    error = models.CharField(max_length=500, blank=True)

    # What an attempt keeps of the row as it begins, and which rows have come to say something else since.
    CARRIED: ClassVar[dict[str, Any]] = {}
    SAYS_NEWER: ClassVar[Q] = Q(pk__in=[])

    class Meta:
        abstract = True


class Check(Outgoing):
    """One name at one commit of the upstream repository: what it should say, and what GitHub shows of it.

    `revision` counts what it should say; `taken_revision` is what the last attempt carries, `sent_revision` the last
    one that GitHub took. GitHub keeps a completed check run completed, so a new run gets a new one: `github_id` is the
    newest.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="checks")
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, blank=True, related_name="checks")
    head_sha = models.CharField(max_length=40)
    name = models.CharField(max_length=MOST_NAME)
    pr_number = models.BigIntegerField()
    run_id = models.CharField(max_length=100, blank=True)
    run_attempt = models.IntegerField(default=1)
    status = models.CharField(max_length=20, choices=CheckStatus.choices)
    conclusion = models.CharField(max_length=20, choices=Conclusion.choices, blank=True)
    title = models.CharField(max_length=MOST_TITLE)
    summary = models.TextField()
    note = models.CharField(max_length=500, blank=True)
    revision = models.IntegerField(default=1)
    taken_revision = models.IntegerField(default=0)
    created_at = models.DateTimeField()

    github_id = models.BigIntegerField(null=True, blank=True)
    sent_revision = models.IntegerField(default=0)
    sent_status = models.CharField(max_length=20, choices=CheckStatus.choices, blank=True)
    sent_run = models.CharField(max_length=120, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)

    CARRIED: ClassVar[dict[str, Any]] = {"taken_revision": F("revision")}
    SAYS_NEWER: ClassVar[Q] = ~Q(taken_revision=F("revision"))

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["head_sha", "name"], name="checks_check_once"),
            models.CheckConstraint(condition=Q(state__in=SendState.values), name="checks_check_state"),
            models.CheckConstraint(
                condition=Q(status="completed") & ~Q(conclusion="") | Q(status="in_progress", conclusion=""),
                name="checks_check_end_whole",
            ),
            models.CheckConstraint(
                condition=Q(conclusion__in=["", *Conclusion.values]), name="checks_check_conclusion"
            ),
            models.CheckConstraint(
                condition=Q(github_id=None, sent_revision=0, sent_at=None, sent_status="")
                | Q(github_id__isnull=False, sent_revision__gt=0, sent_at__isnull=False) & ~Q(sent_status=""),
                name="checks_check_sent_whole",
            ),
            models.CheckConstraint(
                condition=~Q(state="sent") | Q(sent_revision=F("revision")), name="checks_check_sent_is_wanted"
            ),
        ]
        indexes = [
            models.Index(fields=["next_attempt_at"], condition=~Q(state="sent"), name="checks_check_waiting"),
            models.Index(fields=["repository"], condition=Q(status="in_progress"), name="checks_check_open"),
            models.Index(fields=["github_id"], name="checks_check_github"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def external_id(self) -> str:
        """GitHub keeps it with the check run and sends it back: `<run id>:<pull request>`."""
        return f"{self.run_id}:{self.pr_number}"

    @property
    def run(self) -> str:
        """One attempt of one run."""
        return f"{self.run_id}/{self.run_attempt}"

    @property
    def github_url(self) -> str:
        """Where GitHub shows it; empty while it does not."""
        return f"{settings.GITHUB_URL}/{settings.UPSTREAM_REPO}/runs/{self.github_id}" if self.github_id else ""

    @property
    def shown(self) -> str:
        """Its state in one word."""
        return self.conclusion or self.status


class Rerun(Outgoing):
    """Someone pressed “re-run” at GitHub: a downstream's run that is to be run again, once, or why it is not."""

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="reruns")
    head_sha = models.CharField(max_length=40)
    run_id = models.CharField(max_length=100, blank=True)
    scope = models.CharField(max_length=20, choices=Scope.choices)
    delivery_id = models.CharField(max_length=100)
    requested_by = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["delivery_id", "repository", "run_id"], name="checks_rerun_once"),
            models.UniqueConstraint(
                fields=["repository", "run_id"],
                condition=Q(state__in=["pending", "sending"]),
                name="checks_rerun_one_open",
            ),
            models.CheckConstraint(condition=Q(state__in=SendState.values), name="checks_rerun_state"),
            models.CheckConstraint(condition=Q(scope__in=Scope.values), name="checks_rerun_scope"),
            models.CheckConstraint(
                condition=Q(state="sent", sent_at__isnull=False) | (~Q(state="sent") & Q(sent_at=None)),
                name="checks_rerun_sent_at",
            ),
        ]
        indexes = [
            models.Index(fields=["next_attempt_at"], condition=~Q(state="sent"), name="checks_rerun_waiting"),
        ]

    def __str__(self) -> str:
        return f"{self.repository} run {self.run_id}, {self.scope}"
