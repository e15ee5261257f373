"""Falling: notices with deadlines, vendors' answers, temporary downgrades, and the way back."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from apps.core.ids import public_id
from apps.levels.falling_enums import DowngradeState, FallState
from apps.platforms.models import Repository
from apps.platforms.policy import LEVELS

REASON_MAX = 2_000
ANSWER_MAX = 4_000


class FallNotice(models.Model):
    """A repository does not show what its level asks for, and how long it has.

    `criteria`: what was not met in each of the nights. `figures`: those nights as they were written, the newest first:
    {day, policy, results}. The deadline was counted in working days of `calendar` (core.workdays). `dwell_days`: nights
    in a row that open and end it. `event_seq`: the opening.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="fall_notices")
    level = models.SmallIntegerField()
    criteria = ArrayField(models.CharField(max_length=60))
    figures = models.JSONField()
    way_back = models.TextField()
    dwell_days = models.PositiveSmallIntegerField()
    policy_number = models.IntegerField()
    calendar = models.CharField(max_length=10, blank=True)
    opened_at = models.DateTimeField()
    deadline_at = models.DateTimeField()
    event_seq = models.BigIntegerField(unique=True)
    state = models.CharField(max_length=20, choices=FallState.choices, default=FallState.OPEN)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=200, blank=True)
    ended_why = models.CharField(max_length=REASON_MAX, blank=True)

    class Meta:
        ordering = ["-opened_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["repository"], condition=Q(state="open"), name="levels_notice_one_open"),
            models.CheckConstraint(condition=Q(state__in=FallState.values), name="levels_notice_state"),
            models.CheckConstraint(condition=~Q(criteria=[]) & ~Q(figures=[]), name="levels_notice_evidence"),
            models.CheckConstraint(condition=Q(deadline_at__gt=F("opened_at")), name="levels_notice_forward"),
            models.CheckConstraint(
                condition=Q(state="open", ended_at=None, ended_by="", ended_why="")
                | ~Q(state="open") & Q(ended_at__isnull=False) & ~Q(ended_by="") & ~Q(ended_why=""),
                name="levels_notice_ended_whole",
            ),
            models.CheckConstraint(
                condition=~Q(state="demoted") | Q(ended_at__gte=F("deadline_at")), name="levels_notice_after_deadline"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository} at {self.level_code}"

    @property
    def level_code(self) -> str:
        return LEVELS[self.level].code


class NoticeAnswer(models.Model):
    """What a platform's member says to a notice. Shown as it is, and pauses nothing."""

    notice = models.ForeignKey(FallNotice, on_delete=models.PROTECT, related_name="answers")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="notice_answers")
    by_label = models.CharField(max_length=200)
    text = models.CharField(max_length=ANSWER_MAX)
    at = models.DateTimeField()

    class Meta:
        ordering = ["at", "pk"]
        constraints = [models.CheckConstraint(condition=~Q(text=""), name="levels_answer_text")]

    def __str__(self) -> str:
        return f"{self.by_label} to {self.notice}"


class Downgrade(models.Model):
    """A maintainer took a repository down at once, from `level_from` to `level_to`, to be decided by the deadline.

    `event_seq`: the change of level. `reminded_at`: when maintainers were told that it is overdue.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="downgrades")
    level_from = models.SmallIntegerField()
    level_to = models.SmallIntegerField()
    reason = models.CharField(max_length=REASON_MAX)
    by_label = models.CharField(max_length=200)
    calendar = models.CharField(max_length=10, blank=True)
    at = models.DateTimeField()
    deadline_at = models.DateTimeField()
    event_seq = models.BigIntegerField(unique=True)
    reminded_at = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=20, choices=DowngradeState.choices, default=DowngradeState.OPEN)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=200, blank=True)
    ended_why = models.CharField(max_length=REASON_MAX, blank=True)

    class Meta:
        ordering = ["-at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["repository"], condition=Q(state="open"), name="levels_downgrade_one_open"),
            models.CheckConstraint(condition=Q(state__in=DowngradeState.values), name="levels_downgrade_state"),
            models.CheckConstraint(
                condition=Q(level_from__gte=3, level_from__lte=4, level_to__gte=0, level_to__lt=F("level_from")),
                name="levels_downgrade_goes_down",
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="levels_downgrade_reason"),
            models.CheckConstraint(condition=Q(deadline_at__gt=F("at")), name="levels_downgrade_forward"),
            models.CheckConstraint(
                condition=Q(state="open", ended_at=None, ended_by="", ended_why="")
                | ~Q(state="open") & Q(ended_at__isnull=False) & ~Q(ended_by="") & ~Q(ended_why=""),
                name="levels_downgrade_ended_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository} from {self.from_code} to {self.to_code}"

    @property
    def from_code(self) -> str:
        return LEVELS[self.level_from].code

    @property
    def to_code(self) -> str:
        return LEVELS[self.level_to].code


class WayBack(models.Model):
    """What a demoted repository has to meet before `level` can be proposed again. `reached_at`: the night that it did,
    when its members and the maintainers were told. `event_seq`: the demotion."""

    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="ways_back")
    level = models.SmallIntegerField()
    criteria = ArrayField(models.CharField(max_length=60))
    since = models.DateTimeField()
    event_seq = models.BigIntegerField(unique=True)
    reached_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-since", "-pk"]
        constraints = [
            models.CheckConstraint(condition=Q(level__gte=1, level__lte=4), name="levels_way_back_level"),
            models.CheckConstraint(
                condition=Q(reached_at=None) | Q(reached_at__gte=F("since")), name="levels_way_back_forward"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.repository} back to {self.level_code}"

    @property
    def level_code(self) -> str:
        return LEVELS[self.level].code
