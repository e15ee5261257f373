"""Appeals and the rows that they are about. What happened to one stands in the log, where nothing is changed."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from apps.appeals.enums import Claim, State
from apps.appeals.policy import DECIDED
from apps.core.ids import public_id
from apps.platforms.models import Platform, Repository
from apps.relay.models import Job

_STORED = [state.value for state in State if state is not State.PAUSED]


class Appeal(models.Model):
    """A vendor contests a decision (`decision_seq`) or a figure of a repository over a window of UTC days.

    `stood`: the figure as it was when it was contested, in words. `paused_at` until `paused_until`: its one pause.
    `revision` guards every verb. `decider_id_then`: who made the contested decision, by the log (empty: no user).
    `compensation_seq`: the decision that undid the contested one.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    platform = models.ForeignKey(Platform, on_delete=models.PROTECT, related_name="appeals")
    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, null=True, blank=True, related_name="appeals")
    decision_seq = models.BigIntegerField(null=True, blank=True)
    decider_id_then = models.CharField(max_length=100, blank=True)
    figure = models.CharField(max_length=40, blank=True)
    first_day = models.DateField(null=True, blank=True)
    last_day = models.DateField(null=True, blank=True)
    stood = models.CharField(max_length=300)
    claim = models.CharField(max_length=20, choices=Claim.choices)
    words = models.CharField(max_length=5_000)
    links = ArrayField(models.CharField(max_length=500), default=list, blank=True)
    appellant = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="appeals")
    appellant_label = models.CharField(max_length=200)
    state = models.CharField(max_length=20, choices=State.choices, default=State.OPEN)
    revision = models.IntegerField(default=1)
    opened_at = models.DateTimeField()
    deadline_at = models.DateTimeField()
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_until = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField()
    changed_by = models.CharField(max_length=200)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=200, blank=True)
    reason = models.CharField(max_length=2_000, blank=True)
    compensation_seq = models.BigIntegerField(null=True, blank=True)
    reminded_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-opened_at", "-pk"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=_STORED), name="appeals_appeal_state"),
            models.CheckConstraint(condition=Q(claim__in=Claim.values), name="appeals_appeal_claim"),
            models.CheckConstraint(condition=~Q(words=""), name="appeals_appeal_words"),
            models.CheckConstraint(
                condition=Q(decision_seq__isnull=False, figure="", first_day=None, last_day=None)
                | Q(decision_seq=None, repository__isnull=False, first_day__lte=F("last_day")) & ~Q(figure=""),
                name="appeals_appeal_about_one",
            ),
            models.CheckConstraint(
                condition=Q(paused_at=None, paused_until=None) | Q(paused_until__gt=F("paused_at")),
                name="appeals_appeal_pause_whole",
            ),
            models.CheckConstraint(
                condition=Q(state__in=list(DECIDED), decided_at__isnull=False) & ~Q(decided_by="") & ~Q(reason="")
                | ~Q(state__in=list(DECIDED)) & Q(decided_at=None, decided_by="", compensation_seq=None),
                name="appeals_appeal_decided_whole",
            ),
            models.CheckConstraint(
                condition=Q(compensation_seq=None) | Q(state="overturned", decision_seq__isnull=False),
                name="appeals_appeal_compensation_of_overturned",
            ),
            models.UniqueConstraint(
                fields=["decision_seq"], condition=~Q(state="withdrawn"), name="appeals_appeal_decision_once"
            ),
        ]
        indexes = [
            models.Index(fields=["deadline_at"], condition=Q(state="open"), name="appeals_appeal_open"),
            models.Index(fields=["platform", "-opened_at"], name="appeals_appeal_of"),
        ]

    def __str__(self) -> str:
        about = f"decision #{self.decision_seq}" if self.decision_seq else f"{self.figure} of {self.repository}"
        return f"{about} ({self.platform})"


class AppealedRow(models.Model):
    """One job that an appeal is about. A withdrawn appeal lets go of its rows (`is_freed`); of a decided one they stay
    taken, whether `is_accepted` or not."""

    appeal = models.ForeignKey(Appeal, on_delete=models.CASCADE, related_name="rows")
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="appealed_rows")
    is_freed = models.BooleanField(default=False)
    is_accepted = models.BooleanField(null=True, blank=True)

    class Meta:
        ordering = ["appeal", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["job"], condition=Q(is_freed=False), name="appeals_row_once"),
            models.UniqueConstraint(fields=["appeal", "job"], name="appeals_row_once_an_appeal"),
            models.CheckConstraint(
                condition=Q(is_freed=False) | Q(is_accepted=None), name="appeals_row_freed_is_not_decided"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job} in {self.appeal}"
