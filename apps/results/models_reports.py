"""Reports of tests: what was uploaded, what became of it, and what is left of one that was taken down."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import MD5

from apps.core.ids import public_id
from apps.platforms.models import Platform, Repository
from apps.platforms.policy import PUBLIC_FROM
from apps.relay.models import Dispatch, Job
from apps.relay.policy import DISPATCHED_EVENTS, UNDISPATCHED_EVENTS
from apps.results.enums import FileState, ReportFlag, ReportState, TestsVerdict
from apps.results.models_catalogue import Test
from apps.results.quotas import SHARDS_MAX

# The columns that sum to `total`, in the order in which receipts show them.
OUTCOME_COUNTS = ("passed", "failed", "error", "skipped", "xfailed", "xpassed", "flaky", "lost", "unknown")
COUNTS = ("total", *OUTCOME_COUNTS)


class InTreeSource(models.Model):
    """An in-tree platform reports from the upstream repository, by jobs of one reusable workflow on refs of one form.

    `workflow` is the file's path in the repository, `ref` a glob (`refs/heads/main`): both are compared with the
    token's `job_workflow_ref`. `device` is the word that its tests carry. The numeric ids are the upstream
    repository's, pinned when the row was made.
    """

    platform = models.ForeignKey(Platform, on_delete=models.PROTECT, related_name="in_tree_sources")
    workflow = models.CharField(max_length=300)
    ref = models.CharField(max_length=200)
    device = models.CharField(max_length=60)
    github_id = models.BigIntegerField()
    github_owner_id = models.BigIntegerField()
    added_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["platform", "workflow"]
        constraints = [
            models.UniqueConstraint(
                fields=["platform", "workflow"], condition=Q(removed_at=None), name="results_source_once"
            ),
            models.CheckConstraint(
                condition=Q(removed_at=None) | Q(removed_at__gte=F("added_at")), name="results_source_forward"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.platform} from {self.workflow}@{self.ref}"


class Report(models.Model):
    """The tests of one run of one variant, in one or more shards.

    Of a downstream repository, or of an in-tree platform (`source`). What stands on it is what its first upload said;
    `head_sha` is our own delivery's where the hub
    dispatched it (`dispatch`), else a claim: flags say how far it is known. `level`
    is the repository's when the report came: whether it is public is decided then, as with jobs. `held_owner_id` is
    the new owner under whom it was sent: held until that one is accepted.

    Each upload raises `wanted`; a parse that has seen them writes its `revision`. `lease` is the worker's that parses.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, null=True, blank=True, related_name="reports")
    source = models.ForeignKey(InTreeSource, on_delete=models.PROTECT, null=True, blank=True, related_name="reports")
    variant = models.CharField(max_length=100)
    report_key = models.CharField(max_length=1_000)
    dispatch = models.ForeignKey(Dispatch, on_delete=models.PROTECT, null=True, blank=True, related_name="reports")
    delivery_id = models.CharField(max_length=200, blank=True)
    event = models.CharField(max_length=40, blank=True)
    head_sha = models.CharField(max_length=40, blank=True)
    run_id = models.CharField(max_length=20)
    run_attempt = models.IntegerField()
    workflow = models.CharField(max_length=300, blank=True)
    job_name = models.CharField(max_length=300)
    torch_version = models.CharField(max_length=100, blank=True)
    hardware = models.CharField(max_length=200, blank=True)
    level = models.SmallIntegerField()
    held_owner_id = models.BigIntegerField(null=True, blank=True)
    shards = models.IntegerField(default=1)
    state = models.CharField(max_length=20, choices=ReportState.choices, default=ReportState.RECEIVED)
    progress = models.SmallIntegerField(default=0)
    wanted = models.IntegerField(default=0)
    revision = models.IntegerField(default=0)
    lease = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    # The tests of this revision are among those that anyone may search for; 0: not yet, or not public.
    named_revision = models.IntegerField(default=0)
    attempts = models.SmallIntegerField(default=0)
    woken_at = models.DateTimeField(null=True, blank=True)
    failure = models.CharField(max_length=500, blank=True)
    total = models.IntegerField(null=True, blank=True)
    passed = models.IntegerField(null=True, blank=True)
    failed = models.IntegerField(null=True, blank=True)
    error = models.IntegerField(null=True, blank=True)
    skipped = models.IntegerField(null=True, blank=True)
    xfailed = models.IntegerField(null=True, blank=True)
    xpassed = models.IntegerField(null=True, blank=True)
    flaky = models.IntegerField(null=True, blank=True)
    lost = models.IntegerField(null=True, blank=True)
    unknown = models.IntegerField(null=True, blank=True)
    # Tests whose name another test of the report has too, once the device is taken out: kept apart.
    collisions = models.IntegerField(default=0)
    flags = ArrayField(models.CharField(max_length=30), default=list, blank=True)
    # Where the outcomes of `revision` lie in the storage.
    outcomes_name = models.CharField(max_length=100, blank=True)
    received_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    parsed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-received_at", "-pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(repository__isnull=False, source=None) | Q(repository=None, source__isnull=False),
                name="results_report_one_origin",
            ),
            # Long keys enter the index as digests: an index row holds 2,704 bytes at most.
            models.UniqueConstraint(
                F("repository"),
                MD5("report_key"),
                F("variant"),
                condition=Q(repository__isnull=False),
                name="results_report_once",
            ),
            models.UniqueConstraint(
                F("source"),
                MD5("report_key"),
                F("variant"),
                condition=Q(source__isnull=False),
                name="results_report_in_tree_once",
            ),
            models.CheckConstraint(condition=Q(state__in=ReportState.values), name="results_report_state"),
            models.CheckConstraint(
                condition=Q(event__in=["", *DISPATCHED_EVENTS, *UNDISPATCHED_EVENTS]), name="results_report_event"
            ),
            models.CheckConstraint(
                condition=Q(dispatch=None) | ~Q(delivery_id=""), name="results_report_delivery_named"
            ),
            models.CheckConstraint(condition=~Q(variant="") & ~Q(report_key=""), name="results_report_named"),
            models.CheckConstraint(condition=Q(run_attempt__gte=1), name="results_report_attempt"),
            models.CheckConstraint(condition=Q(level__gte=1, level__lte=4), name="results_report_level"),
            models.CheckConstraint(condition=Q(shards__gte=1, shards__lte=SHARDS_MAX), name="results_report_shards"),
            models.CheckConstraint(condition=Q(progress__gte=0, progress__lte=100), name="results_report_progress"),
            models.CheckConstraint(
                condition=Q(revision__gte=0, revision__lte=F("wanted")), name="results_report_revision"
            ),
            models.CheckConstraint(
                condition=Q(state="parsing", lease__isnull=False, lease_until__isnull=False)
                | ~Q(state="parsing") & Q(lease=None, lease_until=None),
                name="results_report_lease",
            ),
            models.CheckConstraint(
                condition=Q(**{f"{name}__isnull": True for name in COUNTS}) & Q(outcomes_name="")
                # Said of each: a comparison with NULL is no refusal.
                | Q(**{f"{name}__isnull": False for name in COUNTS})
                & Q(**{f"{name}__gte": 0 for name in OUTCOME_COUNTS})
                & ~Q(outcomes_name="")
                & Q(total=sum((F(name) for name in OUTCOME_COUNTS[1:]), F(OUTCOME_COUNTS[0]))),
                name="results_report_counts_sum",
            ),
            models.CheckConstraint(
                condition=~Q(state="ready") | Q(total__isnull=False, parsed_at__isnull=False, revision__gte=1),
                name="results_report_ready_whole",
            ),
            models.CheckConstraint(
                condition=Q(state="failed") & ~Q(failure="") | ~Q(state="failed") & Q(failure=""),
                name="results_report_failed_why",
            ),
            models.CheckConstraint(condition=~Q(state="removed") | Q(total=None), name="results_report_removed_empty"),
        ]
        indexes = [
            models.Index(fields=["repository", "-received_at"], name="results_report_recent"),
            models.Index(fields=["source", "-received_at"], name="results_report_in_tree_recent"),
            models.Index(fields=["head_sha", "variant"], name="results_report_commit"),
            models.Index(fields=["changed_at"], condition=Q(revision__lt=F("wanted")), name="results_report_unparsed"),
            models.Index(
                fields=["parsed_at"],
                condition=Q(state="ready") & ~Q(named_revision=F("revision")),
                name="results_report_unnamed",
            ),
            models.Index(fields=["variant", "-received_at"], name="results_report_variant"),
        ]

    def __str__(self) -> str:
        return f"{self.origin_name} {self.job_name} ({self.variant})"

    @property
    def platform(self) -> Platform:
        """Whose tests these are."""
        origin = self.repository or self.source
        assert origin is not None
        return origin.platform

    @property
    def device(self) -> str:
        """The word of its platform's device, as tests carry it."""
        origin = self.repository or self.source
        return origin.device if origin else ""

    @property
    def origin_name(self) -> str:
        """The repository, or the upstream workflow, that it came from."""
        return self.repository.full_name if self.repository else f"{self.source.workflow}" if self.source else ""

    @property
    def is_held(self) -> bool:
        """Sent under a new owner of the repository that nobody has accepted."""
        return (
            self.repository is not None
            and self.held_owner_id is not None
            and self.held_owner_id != self.repository.github_owner_id
        )

    @property
    def is_public(self) -> bool:
        return self.source is not None or (self.level >= PUBLIC_FROM and not self.is_held)

    @property
    def is_pending(self) -> bool:
        """Whether a parse has to come, or goes on."""
        return self.state != ReportState.REMOVED and self.state != ReportState.FAILED and self.revision < self.wanted

    @property
    def counts(self) -> dict[str, int] | None:
        """`total` and what it is made of; None before the first parse."""
        return None if self.total is None else {name: getattr(self, name) for name in COUNTS}

    @property
    def flag_labels(self) -> list[str]:
        return [str(ReportFlag(flag).label) for flag in self.flags]


class Upload(models.Model):
    """One shard of a report, as it came: of which job, and what was sent. `digest` is that of its parts, in order.

    `tests` and `failing` are what the parse found in this shard alone, `is_whole` whether it could read all of it;
    `verdict` is what they say about the job, at its revision `judged_revision`. `raw_removed_at`: since then its bytes
    are not kept for it any more (apps/results/retention.py).
    """

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="uploads")
    shard = models.IntegerField(default=1)
    digest = models.CharField(max_length=64)
    bytes = models.BigIntegerField()
    run_id = models.CharField(max_length=20)
    run_attempt = models.IntegerField()
    workflow = models.CharField(max_length=300, blank=True)
    job_name = models.CharField(max_length=300)
    leg = models.CharField(max_length=200, blank=True)
    check_run_id = models.CharField(max_length=100, blank=True)
    job = models.ForeignKey(Job, on_delete=models.PROTECT, null=True, blank=True, related_name="uploads")
    claims = models.JSONField()
    tests = models.IntegerField(null=True, blank=True)
    failing = models.IntegerField(null=True, blank=True)
    is_whole = models.BooleanField(default=False)
    verdict = models.CharField(max_length=20, choices=TestsVerdict.choices, blank=True)
    judged_revision = models.IntegerField(null=True, blank=True)
    received_at = models.DateTimeField()
    raw_removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["shard"]
        constraints = [
            models.UniqueConstraint(fields=["report", "shard"], name="results_upload_shard_once"),
            models.CheckConstraint(condition=Q(shard__gte=1), name="results_upload_shard"),
            models.CheckConstraint(condition=Q(bytes__gte=0), name="results_upload_bytes"),
            models.CheckConstraint(
                condition=Q(tests=None, failing=None) | Q(failing__gte=0, failing__lte=F("tests")),
                name="results_upload_failing",
            ),
            models.CheckConstraint(
                condition=Q(verdict="") | Q(verdict__in=TestsVerdict.values, job__isnull=False),
                name="results_upload_verdict",
            ),
            models.CheckConstraint(
                condition=Q(raw_removed_at=None) | Q(raw_removed_at__gte=F("received_at")),
                name="results_upload_raw_once",
            ),
        ]
        indexes = [
            models.Index(fields=["received_at"], name="results_upload_received"),
            models.Index(fields=["run_id"], name="results_upload_run"),
            models.Index(fields=["received_at"], condition=Q(raw_removed_at=None), name="results_upload_raw"),
        ]

    def __str__(self) -> str:
        return f"shard {self.shard} of {self.report}"


class UploadPart(models.Model):
    """One file of an upload: what it was called, and the bytes it holds. Parts with equal bytes share them."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="parts")
    position = models.IntegerField()
    name = models.CharField(max_length=255)
    sha256 = models.CharField(max_length=64)
    bytes = models.BigIntegerField()

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["upload", "position"], name="results_part_once")]
        indexes = [models.Index(fields=["sha256"], name="results_part_bytes")]

    def __str__(self) -> str:
        return self.name

    @property
    def storage_name(self) -> str:
        return raw_name(self.sha256)


def raw_name(sha256: str) -> str:
    """Where the bytes of this digest lie in the storage."""
    return f"raw/{sha256[:2]}/{sha256}"


class ReportFile(models.Model):
    """One file within a report's uploads, and how reading it went. `notes`: objects with `code`, `count` and `says`."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="files")
    position = models.IntegerField()
    name = models.CharField(max_length=1_000)
    state = models.CharField(max_length=20, choices=FileState.choices)
    parsed = models.IntegerField(default=0)
    dropped = models.IntegerField(default=0)
    notes = models.JSONField(default=list)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["report", "position"], name="results_file_once"),
            models.CheckConstraint(condition=Q(state__in=FileState.values), name="results_file_state"),
            models.CheckConstraint(condition=Q(parsed__gte=0, dropped__gte=0), name="results_file_counts"),
        ]

    def __str__(self) -> str:
        return self.name


class Finding(models.Model):
    """A test of a report that did not simply pass, with what was said: the same `fingerprint` is the same failure."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="findings")
    test = models.ForeignKey(Test, on_delete=models.PROTECT, related_name="findings")
    outcome = models.CharField(max_length=20)
    message = models.TextField(blank=True)
    trace = models.TextField(blank=True)
    fingerprint = models.BinaryField(max_length=16)
    attempts = models.SmallIntegerField(default=1)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["report", "test"], name="results_finding_once"),
            models.CheckConstraint(
                condition=Q(outcome__in=["failed", "error", "xpassed", "flaky", "lost"]), name="results_finding_outcome"
            ),
            models.CheckConstraint(condition=Q(attempts__gte=1), name="results_finding_attempts"),
        ]
        indexes = [models.Index(fields=["fingerprint"], name="results_finding_same")]

    def __str__(self) -> str:
        return f"{self.test} {self.outcome}"


class Removal(models.Model):
    """What is left of a report that was taken down: why, when, by whom, and the digests of its bytes."""

    report = models.OneToOneField(Report, on_delete=models.PROTECT, related_name="removal")
    reason = models.CharField(max_length=2_000)
    removed_at = models.DateTimeField()
    actor_kind = models.CharField(max_length=20)
    actor_id = models.CharField(max_length=100)
    actor_label = models.CharField(max_length=200)
    digests = ArrayField(models.CharField(max_length=64), default=list)
    event_seq = models.BigIntegerField()

    class Meta:
        ordering = ["-removed_at"]
        constraints = [models.CheckConstraint(condition=~Q(reason=""), name="results_removal_reason")]

    def __str__(self) -> str:
        return f"{self.report}: {self.reason}"
