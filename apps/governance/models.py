"""Proposals, the evidence they bring, what happened to them, and the e-mails about it."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from apps.core.ids import public_id
from apps.governance.enums import NoticeState, Party, State, Verb
from apps.governance.policy import NEXT_ACTOR, OPEN, PROPOSED_LEVEL
from apps.platforms.models import AllowlistAlarm, Platform, Repository
from apps.platforms.policy import EVENTS, LEVELS


class Proposal(models.Model):
    """A vendor asks that a repository be listed at L1.

    `revision` counts submissions: a decision names the one it is about. `contact` is private: the proposer and the
    maintainers see it, the log never does. `changed_at`: since when the proposal is in its state.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    state = models.CharField(max_length=20, choices=State.choices, default=State.WAITING)
    revision = models.PositiveIntegerField(default=1)
    proposer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="proposals")
    platform_name = models.CharField(max_length=100)
    full_name = models.CharField(max_length=140)
    device = models.CharField(max_length=38, blank=True)
    oncalls = ArrayField(models.CharField(max_length=39))
    events = ArrayField(models.CharField(max_length=20))
    contact = models.EmailField()
    platform = models.ForeignKey(
        Platform, on_delete=models.PROTECT, null=True, blank=True, related_name="accepted_proposals"
    )
    repository = models.ForeignKey(
        Repository, on_delete=models.PROTECT, null=True, blank=True, related_name="accepted_proposals"
    )
    submitted_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ["-submitted_at", "-id"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=State.values), name="governance_proposal_state"),
            models.CheckConstraint(condition=Q(revision__gte=1), name="governance_proposal_revision"),
            models.CheckConstraint(
                condition=Q(events__contained_by=list(EVENTS)), name="governance_proposal_events_known"
            ),
            models.UniqueConstraint(
                Lower("full_name"), condition=Q(state__in=list(OPEN)), name="governance_proposal_open_once"
            ),
            models.CheckConstraint(
                condition=Q(state="accepted", platform__isnull=False, repository__isnull=False)
                | (~Q(state="accepted") & Q(platform=None, repository=None)),
                name="governance_proposal_accepted_whole",
            ),
        ]
        indexes = [
            models.Index(fields=["changed_at"], condition=Q(state__in=list(OPEN)), name="governance_proposal_queue"),
            models.Index(fields=["proposer", "-submitted_at"], name="governance_proposal_mine"),
        ]

    def __str__(self) -> str:
        return f"{self.full_name} for {LEVELS[PROPOSED_LEVEL].code}"

    @property
    def next_actor(self) -> Party:
        return NEXT_ACTOR[State(self.state)]

    @property
    def is_open(self) -> bool:
        return self.state in OPEN


class Evidence(models.Model):
    """One item that one submission brought. It is never changed: a resubmission brings its own.

    `digest` is what the log knows of it: SHA-256 over the item and `salt`, so that nobody can guess it from there.
    """

    proposal = models.ForeignKey(Proposal, on_delete=models.CASCADE, related_name="evidence")
    revision = models.PositiveIntegerField()
    position = models.PositiveSmallIntegerField()
    title = models.CharField(max_length=100)
    text = models.TextField(blank=True)
    url = models.CharField(max_length=500, blank=True)
    salt = models.CharField(max_length=32)
    digest = models.CharField(max_length=64)

    class Meta:
        ordering = ["proposal", "revision", "position"]
        verbose_name_plural = "evidence"
        constraints = [
            models.UniqueConstraint(fields=["proposal", "revision", "position"], name="governance_evidence_place"),
            models.CheckConstraint(
                condition=~Q(title="") & (~Q(text="") | ~Q(url="")), name="governance_evidence_says_something"
            ),
            models.CheckConstraint(
                condition=Q(url="") | Q(url__iregex=r"^https?://"), name="governance_evidence_url_of_the_web"
            ),
        ]

    def __str__(self) -> str:
        return self.title


class Transition(models.Model):
    """What was done with a proposal, by whom, in which words. `event_seq`: the public decision that it is about."""

    proposal = models.ForeignKey(Proposal, on_delete=models.CASCADE, related_name="transitions")
    verb = models.CharField(max_length=20, choices=Verb.choices)
    state = models.CharField(max_length=20, choices=State.choices)
    revision = models.PositiveIntegerField()
    actor_label = models.CharField(max_length=200)
    words = models.TextField(blank=True)
    at = models.DateTimeField()
    event_seq = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["proposal", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(verb__in=Verb.values), name="governance_transition_verb"),
            models.CheckConstraint(condition=Q(state__in=State.values), name="governance_transition_state"),
            # What was put back is decided anew, on the same submission: each time it is another decision.
            models.UniqueConstraint(
                fields=["proposal", "revision", "verb", "event_seq"],
                nulls_distinct=False,
                name="governance_transition_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.proposal} {self.get_verb_display()}"


class Notice(models.Model):
    """One e-mail to one reader about one transition, one alarm, or one event of the log: to `user`, or to the
    proposal's contact.

    The row exists before the e-mail leaves; addresses are looked up when it does, and are not copied here.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    transition = models.ForeignKey(Transition, on_delete=models.CASCADE, related_name="notices", null=True, blank=True)
    alarm = models.ForeignKey(AllowlistAlarm, on_delete=models.CASCADE, related_name="notices", null=True, blank=True)
    event_seq = models.BigIntegerField(null=True, blank=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True)
    state = models.CharField(max_length=20, choices=NoticeState.choices, default=NoticeState.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["transition", "alarm", "event_seq", "user"], nulls_distinct=False, name="governance_notice_once"
            ),
            models.CheckConstraint(
                condition=Q(transition__isnull=False, alarm=None, event_seq=None)
                | Q(transition=None, alarm__isnull=False, event_seq=None, user__isnull=False)
                | Q(transition=None, alarm=None, event_seq__isnull=False, user__isnull=False),
                name="governance_notice_about_one",
            ),
            models.CheckConstraint(condition=Q(state__in=NoticeState.values), name="governance_notice_state"),
            models.CheckConstraint(
                condition=Q(state="sent", sent_at__isnull=False) | (~Q(state="sent") & Q(sent_at=None)),
                name="governance_notice_sent_at",
            ),
        ]
        indexes = [
            models.Index(
                fields=["changed_at"], condition=Q(state__in=["pending", "sending"]), name="governance_notice_waiting"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.transition or self.alarm or f'event {self.event_seq}'} to {self.user or 'the contact'}"


from apps.governance.models_evaluation import NightlyEvaluation  # noqa: E402
from apps.governance.models_levels import Waiver  # noqa: E402

__all__ = ["Evidence", "NightlyEvaluation", "Notice", "Proposal", "Transition", "Waiver"]
