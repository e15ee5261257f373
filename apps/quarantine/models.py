"""Evidence of flaky tests, and the quarantines that follow from it."""

from django.db import models
from django.db.models import F, Q

from apps.core.ids import public_id
from apps.platforms.models import Platform
from apps.quarantine.enums import FlakeKind, ReasonClass, Source, State
from apps.quarantine.models_upstream import UpstreamDisabled, UpstreamList, UpstreamWord
from apps.quarantine.policy import EFFECTIVE, OPEN
from apps.results.models import Report, Test

__all__ = [
    "FlakeEvent",
    "Member",
    "Progress",
    "Quarantine",
    "Reading",
    "RuleVersion",
    "Streak",
    "UpstreamDisabled",
    "UpstreamList",
    "UpstreamWord",
]

_HOURS_A_DAY = 24


class Reading(models.Model):
    """A report that was looked through for flakes, at its revision. `turned`: tests that were red or flaky and not red
    in the same job's run before; `usual`: how many that is as a rule, None at first. In an incident none of them
    counts as a flake."""

    report = models.OneToOneField(Report, on_delete=models.CASCADE, primary_key=True, related_name="reading")
    revision = models.IntegerField()
    red = models.IntegerField()
    turned = models.IntegerField()
    usual = models.FloatField(null=True, blank=True)
    is_incident = models.BooleanField(default=False)
    read_at = models.DateTimeField()

    class Meta:
        ordering = ["-read_at"]
        constraints = [models.CheckConstraint(condition=Q(turned__gte=0, red__gte=0), name="quarantine_reading_counts")]

    def __str__(self) -> str:
        return f"{self.report}: {self.turned} turned red"


class FlakeEvent(models.Model):
    """One sign that a test is flaky: `report` shows it red (or flaky by itself), `other` shows the same commit green.

    `sha`, `run_id`, `run_attempt` and `job_name` are the red report's; `at` is when it was received. `place` is the
    commit's on main, None where it is not there or not known.
    """

    platform = models.ForeignKey(Platform, on_delete=models.PROTECT, related_name="flakes")
    variant = models.CharField(max_length=100)
    test = models.ForeignKey(Test, on_delete=models.PROTECT, related_name="flakes")
    sha = models.CharField(max_length=40, blank=True)
    place = models.IntegerField(null=True, blank=True)
    kind = models.CharField(max_length=20, choices=FlakeKind.choices)
    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="flakes")
    other = models.ForeignKey(Report, on_delete=models.CASCADE, null=True, blank=True, related_name="flakes_shown")
    run_id = models.CharField(max_length=20)
    run_attempt = models.IntegerField()
    job_name = models.CharField(max_length=300)
    is_in_incident = models.BooleanField(default=False)
    at = models.DateTimeField()

    class Meta:
        ordering = ["-at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["report", "test", "kind"], name="quarantine_flake_once"),
            models.CheckConstraint(condition=Q(kind__in=FlakeKind.values), name="quarantine_flake_kind"),
            models.CheckConstraint(
                condition=Q(kind__in=["rerun", "evidence"], other=None)
                | Q(kind__in=["attempts", "reports"], other__isnull=False) & ~Q(sha=""),
                name="quarantine_flake_rows",
            ),
        ]
        indexes = [
            models.Index(fields=["platform", "variant", "test", "-at"], name="quarantine_flake_of_test"),
            models.Index(fields=["-at"], name="quarantine_flake_recent"),
        ]

    def __str__(self) -> str:
        return f"{self.test} {self.kind}"


class Streak(models.Model):
    """A test that has been red in every run since `since`: a regression once it is long, never a flake.

    Ended by the first pass; a run that skips it or does not name it changes nothing. `runs` and `shas` count what was
    red; `is_raised`: it is shown as a regression."""

    platform = models.ForeignKey(Platform, on_delete=models.PROTECT, related_name="streaks")
    variant = models.CharField(max_length=100)
    test = models.ForeignKey(Test, on_delete=models.PROTECT, related_name="streaks")
    since = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="streaks_begun")
    last = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="streaks_last")
    last_sha = models.CharField(max_length=40, blank=True)
    runs = models.IntegerField(default=1)
    commits = models.IntegerField(default=1)
    since_at = models.DateTimeField()
    last_at = models.DateTimeField()
    is_raised = models.BooleanField(default=False)

    class Meta:
        ordering = ["-since_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["platform", "variant", "test"], name="quarantine_streak_once"),
            models.CheckConstraint(condition=Q(runs__gte=1, commits__gte=0), name="quarantine_streak_counts"),
        ]
        indexes = [models.Index(fields=["-since_at"], condition=Q(is_raised=True), name="quarantine_streak_raised")]

    def __str__(self) -> str:
        return f"{self.test} red in {self.runs} runs"


class RuleVersion(models.Model):
    """A rule set from a moment on. Rows are never changed: the one with the greatest `from_at` that has passed holds.

    `shipped`: the key of policy.SHIPPED that it is, '' for one of our own."""

    shipped = models.CharField(max_length=20, blank=True)
    values = models.JSONField()
    from_at = models.DateTimeField(unique=True)
    reason = models.CharField(max_length=2_000)
    by = models.CharField(max_length=200)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-from_at"]
        constraints = [
            models.CheckConstraint(condition=~Q(reason=""), name="quarantine_rules_reason"),
            models.CheckConstraint(condition=Q(from_at__gte=F("created_at")), name="quarantine_rules_not_backdated"),
        ]

    def __str__(self) -> str:
        return f"rules from {self.from_at:%Y-%m-%d}"


class Quarantine(models.Model):
    """Red outcomes of some tests on one platform and variant are listed apart, for a reason, with an owner, for a time.

    Its scope is its members, or what `pattern` fits (apps/results/exclusions.py). Without a known platform (`said`) it
    has no effect. `previous`: the record that this one follows: renewals, caps and budget count over the chain.
    `fix_sha`, `fix_place`: from which commit on passes prove that it may go. `is_aggregate`: members of one file that
    entered at once.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    platform = models.ForeignKey(Platform, on_delete=models.PROTECT, null=True, blank=True, related_name="quarantines")
    said = models.CharField(max_length=100, blank=True)
    variant = models.CharField(max_length=100)
    pattern = models.CharField(max_length=500, blank=True)
    is_aggregate = models.BooleanField(default=False)
    state = models.CharField(max_length=20, choices=State.choices, default=State.PROPOSED)
    source = models.CharField(max_length=20, choices=Source.choices)
    reason_class = models.CharField(max_length=20, choices=ReasonClass.choices)
    reason = models.CharField(max_length=2_000)
    owner = models.CharField(max_length=39)
    issue_url = models.CharField(max_length=300, blank=True)
    previous = models.OneToOneField("self", on_delete=models.PROTECT, null=True, blank=True, related_name="following")
    tests = models.IntegerField(default=0)
    proposed_at = models.DateTimeField()
    effective_from = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    renewals = models.SmallIntegerField(default=0)
    fix_sha = models.CharField(max_length=40, blank=True)
    fix_place = models.IntegerField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=2_000, blank=True)
    changed_at = models.DateTimeField()
    revision = models.IntegerField(default=1)

    class Meta:
        ordering = ["-proposed_at", "-pk"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=State.values), name="quarantine_state"),
            models.CheckConstraint(condition=Q(source__in=Source.values), name="quarantine_source"),
            models.CheckConstraint(condition=Q(reason_class__in=ReasonClass.values), name="quarantine_reason_class"),
            models.CheckConstraint(condition=~Q(reason="") & ~Q(owner="") & ~Q(variant=""), name="quarantine_owned"),
            models.CheckConstraint(
                condition=Q(platform__isnull=False) | Q(state__in=["unclear", "declined"]),
                name="quarantine_platform_known",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=[*EFFECTIVE, "released", "expired", "vanished", "broken"])
                | Q(effective_from__isnull=False, expires_at__isnull=False, expires_at__gt=F("effective_from")),
                name="quarantine_has_an_end",
            ),
            models.CheckConstraint(
                condition=Q(state__in=list(OPEN), ended_at=None, end_reason="")
                | ~Q(state__in=list(OPEN)) & Q(ended_at__isnull=False) & ~Q(end_reason=""),
                name="quarantine_ended_why",
            ),
            models.CheckConstraint(condition=Q(tests__gte=0, renewals__gte=0), name="quarantine_counts"),
            models.UniqueConstraint(
                fields=["platform", "variant", "pattern"],
                condition=Q(state__in=list(OPEN)) & ~Q(pattern="") & Q(platform__isnull=False),
                name="quarantine_pattern_once",
            ),
        ]
        indexes = [
            models.Index(fields=["expires_at"], condition=Q(state__in=list(EFFECTIVE)), name="quarantine_due"),
            models.Index(fields=["platform", "variant", "state"], name="quarantine_of_platform"),
        ]

    def __str__(self) -> str:
        return f"{self.title} on {self.platform or self.said}"

    @property
    def title(self) -> str:
        """Its pattern, its first test (where a selector has read it), or how many tests."""
        first = getattr(self, "first_test", None)
        if self.pattern or not first:
            return self.pattern or f"{self.tests:,} tests"
        return f"{first} and {self.tests - 1:,} more" if self.tests > 1 else str(first)

    @property
    def release_progress(self) -> "Progress | None":
        """How far its release is proven, as last reckoned; None where it is not in force, or not looked at since."""
        found: Progress | None = getattr(self, "progress", None)
        if found is None or self.state not in EFFECTIVE or self.effective_from is None:
            return None
        return found if found.reckoned_at >= self.effective_from else None


class Progress(models.Model):
    """How far the release of a quarantine is proven, as the sweep last reckoned it (policy.Proof): a page does not open
    the files of outcomes. `missing`: in words, '' where nothing is. `last_run_at`: when a report last had one of its
    tests run, since it was put in force."""

    quarantine = models.OneToOneField(Quarantine, on_delete=models.CASCADE, primary_key=True, related_name="progress")
    passes = models.IntegerField()
    passes_needed = models.IntegerField()
    reds = models.IntegerField()
    hours = models.FloatField()
    hours_needed = models.FloatField()
    missing = models.CharField(max_length=200, blank=True)
    last_run_at = models.DateTimeField(null=True, blank=True)
    reckoned_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "progress"
        constraints = [
            models.CheckConstraint(
                condition=Q(passes__gte=0, reds__gte=0, hours__gte=0), name="quarantine_progress_counts"
            )
        ]

    def __str__(self) -> str:
        return f"{self.passes} of {self.passes_needed} passes"

    @property
    def days(self) -> float:
        return self.hours / _HOURS_A_DAY

    @property
    def days_needed(self) -> float:
        return self.hours_needed / _HOURS_A_DAY


class Member(models.Model):
    """One test of a quarantine. A test stands in one open quarantine of a platform and variant at most: `is_open`,
    `platform` and `variant` repeat the quarantine's for that constraint alone. Of a pattern, the tests that it fitted
    in the last report."""

    quarantine = models.ForeignKey(Quarantine, on_delete=models.PROTECT, related_name="members")
    platform = models.ForeignKey(Platform, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    variant = models.CharField(max_length=100)
    test = models.ForeignKey(Test, on_delete=models.PROTECT, related_name="quarantined")
    is_open = models.BooleanField(default=True)
    last_seen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["test_id"]
        constraints = [
            models.UniqueConstraint(fields=["quarantine", "test"], name="quarantine_member_once"),
            models.UniqueConstraint(
                fields=["platform", "variant", "test"],
                condition=Q(is_open=True, platform__isnull=False),
                name="quarantine_test_once",
            ),
        ]

    def __str__(self) -> str:
        return str(self.test)
