"""Verbs on declared limits: how long a repository's jobs may stay silent before the hub ends them."""

import datetime

from django.db import transaction

from apps.audit.enums import Action
from apps.audit.services import Actor, record
from apps.core.errors import Problem
from apps.platforms.edits import subject_of
from apps.platforms.models import Repository
from apps.relay.models import TimeLimit
from apps.relay.policy import LIMIT_MAX_SECONDS, LIMIT_MIN_SECONDS

LIMITS_MAX = 100


@transaction.atomic
def declare_limit(
    *, repository: Repository, job_name: str, seconds: int, actor: Actor, now: datetime.datetime
) -> TimeLimit:
    """Declare the limit of a repository's jobs of one name, or ('') of all that have none of their own.

    An unchanged limit writes nothing. Raises Problem `malformed` out of range, or past LIMITS_MAX of a repository.
    """
    if not LIMIT_MIN_SECONDS <= seconds <= LIMIT_MAX_SECONDS:
        low, high = LIMIT_MIN_SECONDS // 60, LIMIT_MAX_SECONDS // 60
        raise Problem("malformed", f"minutes: saw {seconds // 60}, send {low} to {high}.", "minutes")
    Repository.objects.select_for_update().get(pk=repository.pk)
    limits = {limit.job_name: limit for limit in TimeLimit.objects.filter(repository=repository)}
    known = limits.get(job_name)
    if known is not None and known.seconds == seconds:
        return known
    if known is None and len(limits) >= LIMITS_MAX:
        raise Problem("malformed", f"job_name: {LIMITS_MAX} limits are declared, remove one first.", "job_name")
    limit, _ = TimeLimit.objects.update_or_create(
        repository=repository, job_name=job_name, defaults={"seconds": seconds, "declared_at": now}
    )
    record(
        action=Action.LIMIT_DECLARED,
        actor=actor,
        subject=subject_of(repository),
        summary=f"{repository.full_name}: {_jobs(job_name)} may be silent for {seconds // 60} minutes",
        before={"seconds": known.seconds} if known else {},
        after={"job_name": job_name, "seconds": seconds},
        now=now,
        is_decision=False,
    )
    return limit


@transaction.atomic
def remove_limit(*, limit: TimeLimit, actor: Actor, now: datetime.datetime) -> bool:
    """Take a limit back: what is less special holds again. Returns False when someone was faster."""
    deleted, _ = TimeLimit.objects.filter(pk=limit.pk).delete()
    if not deleted:
        return False
    record(
        action=Action.LIMIT_REMOVED,
        actor=actor,
        subject=subject_of(limit.repository),
        summary=f"{limit.repository.full_name}: no limit of their own for {_jobs(limit.job_name)}",
        before={"job_name": limit.job_name, "seconds": limit.seconds},
        now=now,
        is_decision=False,
    )
    return True


def _jobs(job_name: str) -> str:
    return f"jobs called “{job_name}”" if job_name else "all jobs"
