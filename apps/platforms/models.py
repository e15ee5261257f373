"""Platforms, their downstream repositories, the level of each now and at every time before."""

from django.conf import settings
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Lower

from apps.core.ids import public_id
from apps.platforms.policy import EVENTS, LEVELS


class Platform(models.Model):
    """An accelerator as people speak of it: one or more downstream repositories stand behind it."""

    class Kind(models.TextChoices):
        OUT_OF_TREE = "out_of_tree", "out of tree"
        IN_TREE = "in_tree", "in tree"

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=20, choices=Kind.choices, default=Kind.OUT_OF_TREE)
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
