"""Platforms, their downstream repositories, the level of each now and at every time before."""

from django.conf import settings
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Lower

from apps.core.ids import public_id
from apps.platforms.enums import OPEN_EDITS, AlarmKind, DemotionState, EditState
from apps.platforms.policy import EVENTS, LEVELS, WEBHOOK_EVENTS


class Platform(models.Model):
    """An accelerator as people speak of it: one or more downstream repositories stand behind it."""

    class Kind(models.TextChoices):
        OUT_OF_TREE = "out_of_tree", "out of tree"
        IN_TREE = "in_tree", "in tree"

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=20, choices=Kind.choices, default=Kind.OUT_OF_TREE)
    # Whose working days its deadlines are counted in: a code of core.workdays; empty is Monday to Friday.
    calendar = models.CharField(max_length=10, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=["out_of_tree", "in_tree"]), name="platforms_platform_kind"),
            models.CheckConstraint(condition=~Q(name=""), name="platforms_platform_named"),
        ]

    def __str__(self) -> str:
        return self.name


class Repository(models.Model):
    """A downstream repository and its standing on the allowlist.

    GitHub's numeric ids are pinned once and compared ever after: a name can be taken over, an id cannot.
    """

    class PinSource(models.TextChoices):
        NONE = "", "not pinned yet"
        GITHUB_API = "github_api", "asked GitHub"
        FIRST_SIGHT = "first_sight", "first callback, GitHub could not be asked"

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    platform = models.ForeignKey(Platform, on_delete=models.PROTECT, related_name="repositories")
    full_name = models.CharField(max_length=140)
    level = models.SmallIntegerField(default=0)
    device = models.CharField(max_length=60, blank=True)
    oncalls = ArrayField(models.CharField(max_length=39), default=list, blank=True)
    events = ArrayField(models.CharField(max_length=20), default=list)
    github_id = models.BigIntegerField(null=True, blank=True)
    github_owner_id = models.BigIntegerField(null=True, blank=True)
    pin_source = models.CharField(max_length=20, choices=PinSource.choices, blank=True, default=PinSource.NONE)
    pinned_at = models.DateTimeField(null=True, blank=True)
    # A probe tests the hub itself: it stands on the hub's health page, and in no public number or list.
    is_probe = models.BooleanField(default=False)
    # Why GitHub did not pin it, and when it was asked last.
    pin_refusal = models.CharField(max_length=300, blank=True)
    pin_refused_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["full_name"]
        verbose_name_plural = "repositories"
        constraints = [
            models.UniqueConstraint(Lower("full_name"), name="platforms_repository_name"),
            models.UniqueConstraint(fields=["github_id"], name="platforms_repository_github_id"),
            models.CheckConstraint(condition=Q(level__gte=0, level__lte=4), name="platforms_repository_level"),
            models.CheckConstraint(condition=~Q(level=3) | ~Q(device=""), name="platforms_repository_device_at_l3"),
            models.CheckConstraint(
                condition=Q(events__contained_by=list(EVENTS)), name="platforms_repository_events_known"
            ),
            models.CheckConstraint(
                condition=Q(pin_source="", github_id=None, github_owner_id=None, pinned_at=None)
                | Q(
                    pin_source__in=["github_api", "first_sight"],
                    github_id__isnull=False,
                    github_owner_id__isnull=False,
                    pinned_at__isnull=False,
                ),
                name="platforms_repository_pin_whole",
            ),
        ]

    def __str__(self) -> str:
        return self.full_name

    @property
    def owner(self) -> str:
        return self.full_name.split("/")[0]

    @property
    def name(self) -> str:
        return self.full_name.split("/")[1]

    @property
    def level_code(self) -> str:
        return LEVELS[self.level].code

    @property
    def level_name(self) -> str:
        return LEVELS[self.level].name


class LevelInterval(models.Model):
    """A repository was at a level from `started_at` until `ended_at` (open: still is). Intervals never overlap."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="level_intervals")
    level = models.SmallIntegerField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    # From a file about the time before the hub knew the repository (apps/platforms/tenure.py).
    is_imported = models.BooleanField(default=False)
    event_seq = models.BigIntegerField()

    class Meta:
        ordering = ["-started_at", "-id"]
        constraints = [
            models.CheckConstraint(condition=Q(level__gte=0, level__lte=4), name="platforms_interval_level"),
            models.CheckConstraint(
                condition=Q(ended_at=None) | Q(ended_at__gte=F("started_at")), name="platforms_interval_forward"
            ),
            ExclusionConstraint(
                name="platforms_interval_no_overlap",
                expressions=[
                    ("repository", RangeOperators.EQUAL),
                    (
                        Func("started_at", "ended_at", function="tstzrange", output_field=DateTimeRangeField()),
                        RangeOperators.OVERLAPS,
                    ),
                ],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository}: {self.level_code} from {self.started_at:%Y-%m-%d}"

    @property
    def level_code(self) -> str:
        return LEVELS[self.level].code

    @property
    def level_name(self) -> str:
        return LEVELS[self.level].name


class Participation(models.Model):
    """Which of the events that its listing grants a repository is sent. Without a row: all of them, any number at once.

    `refs` are globs, `labels` words; empty is any. `sample_percent`: the share of them that the hub draws.
    `max_in_flight`: how many may be sent and not answered yet; None: any number. `revision` guards every update.
    """

    repository = models.OneToOneField(Repository, on_delete=models.CASCADE, related_name="participation")
    events = ArrayField(models.CharField(max_length=20))
    refs = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    labels = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    sample_percent = models.SmallIntegerField(default=100)
    max_in_flight = models.IntegerField(null=True, blank=True)
    changed_at = models.DateTimeField()
    revision = models.IntegerField(default=1)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(events__contained_by=list(WEBHOOK_EVENTS)) & ~Q(events=[]),
                name="platforms_participation_events",
            ),
            models.CheckConstraint(
                condition=Q(sample_percent__gte=1, sample_percent__lte=100), name="platforms_participation_sample"
            ),
            models.CheckConstraint(
                condition=Q(max_in_flight=None) | Q(max_in_flight__gte=1), name="platforms_participation_in_flight"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository} takes part in {', '.join(self.events)}"


class MaintenanceWindow(models.Model):
    """A repository is sent nothing from `starts_at` until `ends_at`, as announced before. Windows never overlap."""

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="maintenance_windows")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    note = models.CharField(max_length=200)
    announced_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["starts_at"]
        constraints = [
            models.CheckConstraint(condition=Q(ends_at__gt=F("starts_at")), name="platforms_window_forward"),
            models.CheckConstraint(condition=Q(starts_at__gt=F("announced_at")), name="platforms_window_announced"),
            ExclusionConstraint(
                name="platforms_window_no_overlap",
                expressions=[
                    ("repository", RangeOperators.EQUAL),
                    (
                        Func("starts_at", "ends_at", function="tstzrange", output_field=DateTimeRangeField()),
                        RangeOperators.OVERLAPS,
                    ),
                ],
                condition=Q(withdrawn_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository}: {self.starts_at:%Y-%m-%d %H:%M} to {self.ends_at:%Y-%m-%d %H:%M}"


class Membership(models.Model):
    """A user speaks for a platform."""

    platform = models.ForeignKey(Platform, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    joined_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["platform", "user"], name="platforms_membership_once")]

    def __str__(self) -> str:
        return f"{self.user} for {self.platform}"


class Invitation(models.Model):
    """A link that lets one person speak for a platform. Only its digest is kept: the link is shown once."""

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    platform = models.ForeignKey(Platform, on_delete=models.CASCADE, related_name="invitations")
    digest = models.CharField(max_length=64, unique=True)
    note = models.CharField(max_length=100)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="invitations_made")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(accepted_at=None) | Q(withdrawn_at=None), name="platforms_invitation_one_end"
            ),
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")), name="platforms_invitation_expires_later"
            ),
        ]

    def __str__(self) -> str:
        return f"to {self.platform}: {self.note}"


class UpstreamFile(models.Model):
    """The allowlist file as the hub took it last: the good copy that stays in force whatever upstream shows since.

    One row, while the file is the authority. `answered_at`: when GitHub last showed the file, good or not.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    commit_sha = models.CharField(max_length=64, blank=True)
    text = models.TextField(blank=True)
    taken_at = models.DateTimeField(null=True, blank=True)
    answered_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="platforms_upstream_file_single"),
            models.CheckConstraint(
                condition=Q(commit_sha="", taken_at=None) | (~Q(commit_sha="") & Q(taken_at__isnull=False)),
                name="platforms_upstream_file_taken_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"the file at {self.commit_sha[:12] or 'no commit yet'}"


class AllowlistAlarm(models.Model):
    """The file was not taken as upstream shows it, and why. `text` is what was refused, for whoever compares.

    Open until a good file is taken, or until someone accepts exactly this commit. At most one is open.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    kind = models.CharField(max_length=20, choices=AlarmKind.choices)
    detail = models.TextField()
    commit_sha = models.CharField(max_length=64, blank=True)
    text = models.TextField(blank=True)
    raised_at = models.DateTimeField()
    cleared_at = models.DateTimeField(null=True, blank=True)
    accepted_seq = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["-raised_at", "-id"]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=AlarmKind.values), name="platforms_alarm_kind"),
            models.UniqueConstraint(
                fields=["cleared_at"],
                condition=Q(cleared_at=None),
                nulls_distinct=False,
                name="platforms_alarm_one_open",
            ),
            models.CheckConstraint(
                condition=Q(accepted_seq=None) | Q(kind=AlarmKind.SHRINK), name="platforms_alarm_only_shrink_accepted"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.detail}"


class AllowlistEdit(models.Model):
    """A decision that waits for the file: the pull request that would make it so, and how far that is.

    Level, device, oncalls and events are what was decided; at level 0 the entry is to go. `event_seq` is the decision.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="edits")
    event_seq = models.BigIntegerField(unique=True)
    level_before = models.SmallIntegerField()
    level = models.SmallIntegerField()
    device = models.CharField(max_length=60, blank=True)
    oncalls = ArrayField(models.CharField(max_length=39), default=list, blank=True)
    events = ArrayField(models.CharField(max_length=20), default=list)
    state = models.CharField(max_length=20, choices=EditState.choices, default=EditState.PENDING)
    decided_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    pull_number = models.PositiveIntegerField(null=True, blank=True)
    pull_url = models.CharField(max_length=500, blank=True)
    commit_sha = models.CharField(max_length=64, blank=True)
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-event_seq"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=EditState.values), name="platforms_edit_state"),
            models.CheckConstraint(
                condition=Q(level__gte=0, level__lte=4, level_before__gte=0, level_before__lte=4),
                name="platforms_edit_level",
            ),
            models.CheckConstraint(condition=~Q(level=3) | ~Q(device=""), name="platforms_edit_device_at_l3"),
            models.CheckConstraint(condition=Q(events__contained_by=list(EVENTS)), name="platforms_edit_events_known"),
            models.UniqueConstraint(
                fields=["repository"],
                condition=Q(state__in=["pending", "opening", "opened"]),
                name="platforms_edit_open_once",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["opened", "closed"]) | Q(pull_number__isnull=False),
                name="platforms_edit_opened_has_pull",
            ),
        ]
        indexes = [
            models.Index(
                fields=["changed_at"],
                condition=Q(state__in=["pending", "opening", "opened"]),
                name="platforms_edit_open",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository} from {LEVELS[self.level_before].code} to {LEVELS[self.level].code}"

    @property
    def level_code(self) -> str:
        return LEVELS[self.level].code

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_EDITS


class Demotion(models.Model):
    """Upstream's own pull request to lower a repository, made by its script. A record: nothing is decided here."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="demotions")
    pull_number = models.PositiveIntegerField(unique=True)
    pull_url = models.CharField(max_length=500)
    title = models.CharField(max_length=300)
    state = models.CharField(max_length=20, choices=DemotionState.choices, default=DemotionState.OPEN)
    level_before = models.SmallIntegerField()
    opened_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-opened_at", "-id"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=DemotionState.values), name="platforms_demotion_state"),
            models.CheckConstraint(
                condition=Q(state="open", ended_at=None) | (~Q(state="open") & Q(ended_at__isnull=False)),
                name="platforms_demotion_ended",
            ),
        ]
        indexes = [
            models.Index(fields=["repository"], condition=Q(state="open"), name="platforms_demotion_open"),
        ]

    def __str__(self) -> str:
        return f"#{self.pull_number} about {self.repository}"


class Pipeline(models.Model):
    """A Buildkite pipeline that speaks for a repository: its tokens name no repository themselves.

    `required_claims` maps a claim to the values of which a token must have one, such as `{"build_branch": ["main"]}`:
    builds of forks get tokens of the same pipeline.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="pipelines")
    organization_id = models.UUIDField()
    pipeline_id = models.UUIDField()
    required_claims = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["repository__full_name", "created_at"]
        constraints = [
            models.UniqueConstraint(fields=["organization_id", "pipeline_id"], name="platforms_pipeline_once"),
        ]

    def __str__(self) -> str:
        return f"{self.pipeline_id} for {self.repository}"


class NameChange(models.Model):
    """A pinned repository spoke under another name. It is called so once GitHub confirms it (`confirmed_at`); the old
    name stays its alias."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="name_changes")
    old_name = models.CharField(max_length=140)
    new_name = models.CharField(max_length=140)
    seen_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-seen_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                F("repository"), Lower("new_name"), condition=Q(confirmed_at=None), name="platforms_name_change_once"
            ),
        ]
        indexes = [models.Index(Lower("old_name"), name="platforms_name_change_alias")]

    def __str__(self) -> str:
        return f"{self.old_name} is now {self.new_name}"


class Transfer(models.Model):
    """A pinned repository spoke under another owner: what it sends is held until somebody decides."""

    class State(models.TextChoices):
        OPEN = "open", "waits for a decision"
        ACCEPTED = "accepted", "accepted"
        REFUSED = "refused", "refused"

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="transfers")
    old_owner_id = models.BigIntegerField()
    new_owner_id = models.BigIntegerField()
    new_name = models.CharField(max_length=140)
    state = models.CharField(max_length=20, choices=State.choices, default=State.OPEN)
    opened_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-opened_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["repository", "new_owner_id"],
                condition=Q(state__in=["open", "refused"]),
                name="platforms_transfer_once",
            ),
            models.CheckConstraint(
                condition=Q(state="open", decided_at=None)
                | Q(state__in=["accepted", "refused"], decided_at__isnull=False),
                name="platforms_transfer_decided",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository} to {self.new_name}"
