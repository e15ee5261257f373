"""Verbs on declared outcomes: a job that is meant to fail counts so only where a maintainer said it beforehand, or on
the record afterwards."""

import datetime

from django.db import transaction
from django.db.models.functions import TruncDate

from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.services import Actor, record
from apps.core.errors import Problem
from apps.core.wakeups import wake
from apps.platforms.edits import subject_of
from apps.platforms.models import Repository
from apps.relay.enums import Declared
from apps.relay.models import DeclaredOutcome, Job
from apps.relay.topics import JOB_CHANGED

# How long a declaration holds at most, and how far back it may reach: as far as figures are looked at.
LONGEST = datetime.timedelta(days=366)
FURTHEST_BACK = datetime.timedelta(days=30)


@transaction.atomic
def declare_outcome(
    *,
    repository: Repository,
    workflow: str,
    job_name: str,
    outcome: Declared,
    reason: str,
    starts_at: datetime.datetime,
    ends_at: datetime.datetime,
    actor: Actor,
    now: datetime.datetime,
) -> DeclaredOutcome:
    """Declare what the jobs of exactly this workflow and name are meant to be, if first seen from `starts_at` until
    `ends_at`. The days of such jobs that are known already are counted anew.

    Raises Problem `malformed` for times that run backwards, are too long or reach too far back or have passed, and
    `already_declared` where another declaration of the job holds at some of that time.
    """
    _check_times(starts_at, ends_at, now)
    Repository.objects.select_for_update().get(pk=repository.pk)
    held = DeclaredOutcome.objects.filter(
        repository=repository,
        workflow=workflow,
        job_name=job_name,
        withdrawn_at=None,
        starts_at__lt=ends_at,
        ends_at__gt=starts_at,
    ).first()
    if held is not None:
        raise Problem(
            "already_declared",
            f"job_name: it is declared as {Declared(held.outcome).label} until {held.ends_at:%Y-%m-%d %H:%M} UTC.",
            "job_name",
        )
    declared = DeclaredOutcome.objects.create(
        repository=repository,
        workflow=workflow,
        job_name=job_name,
        outcome=outcome,
        reason=reason,
        starts_at=starts_at,
        ends_at=ends_at,
        declared_at=now,
        declared_by=actor.label,
    )
    _count_anew(declared, now)
    _record(Action.OUTCOME_DECLARED, declared, f"is {outcome.label}", reason, actor, now)
    return declared


@transaction.atomic
def withdraw_outcome(*, declared: DeclaredOutcome, reason: str, actor: Actor, now: datetime.datetime) -> bool:
    """Take a declaration back, as if it had never been made: its jobs count by their conclusions. Returns False when
    someone was faster."""
    changed = DeclaredOutcome.objects.filter(pk=declared.pk, withdrawn_at=None).update(withdrawn_at=now)
    if not changed:
        return False
    _count_anew(declared, now)
    _record(Action.OUTCOME_WITHDRAWN, declared, "is no longer declared", reason, actor, now)
    return True


def _check_times(starts_at: datetime.datetime, ends_at: datetime.datetime, now: datetime.datetime) -> None:
    if starts_at < now - FURTHEST_BACK:
        raise Problem(
            "malformed",
            f"starts_at: saw {starts_at:%Y-%m-%d}, send {FURTHEST_BACK.days} days ago or later.",
            "starts_at",
        )
    if not (max(starts_at, now) < ends_at and ends_at - starts_at <= LONGEST):
        raise Problem(
            "malformed",
            f"ends_at: saw {ends_at:%Y-%m-%d %H:%M}, send a time to come, after starts_at and at most {LONGEST.days} "
            "days after it.",
            "ends_at",
        )


def _count_anew(declared: DeclaredOutcome, now: datetime.datetime) -> None:
    """Have the days counted anew on which jobs of this declaration, and whatever supersedes them, were first seen."""
    days = (
        Job.objects.filter(
            repository=declared.repository,
            first_seen_at__gte=declared.starts_at,
            first_seen_at__lt=declared.ends_at,
            workflow=declared.workflow,
            job_name=declared.job_name,
        )
        .annotate(day=TruncDate("first_seen_at", tzinfo=datetime.UTC))
        .values_list("day", flat=True)
        .distinct()
    )
    wake(JOB_CHANGED, [f"{declared.repository_id}:{day}" for day in sorted(days)], now=now)


def _record(
    action: Action, declared: DeclaredOutcome, what: str, reason: str, actor: Actor, now: datetime.datetime
) -> Event:
    repository, job = declared.repository, f"{declared.workflow} / {declared.job_name}".rstrip(" /")
    body = {
        "workflow": declared.workflow,
        "job_name": declared.job_name,
        "outcome": declared.outcome,
        "starts_at": declared.starts_at.isoformat(),
        "ends_at": declared.ends_at.isoformat(),
    }
    is_new = action is Action.OUTCOME_DECLARED
    return record(
        action=action,
        actor=actor,
        subject=subject_of(repository),
        summary=f"{repository.full_name}: the job “{job}” {what}",
        before={} if is_new else body,
        after=body if is_new else {},
        reason=reason,
        now=now,
        is_decision=True,
    )
