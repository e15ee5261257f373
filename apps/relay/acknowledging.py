"""The verb of oncalls: a red job is seen, for a reason, until when."""

import datetime

from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.services import actor_of
from apps.audit.enums import Action
from apps.audit.services import Subject, record
from apps.core.errors import Problem, written
from apps.core.permissions import Permission
from apps.core.wakeups import wake
from apps.platforms.models import Repository
from apps.platforms.selectors import may_on_platform
from apps.relay.models import Acknowledgement, Job
from apps.relay.policy import EXPECTED_WITHIN, RED
from apps.relay.topics import JOB_CHANGED

REASON_MAX = 2_000


def may_acknowledge(user: User, repository: Repository) -> bool:
    """Whether a user answers for a repository's red jobs: who speaks for its platform, and its named oncalls as far as
    they have signed in with GitHub."""
    if may_on_platform(user, Permission.JOB_ACKNOWLEDGE, repository.platform):
        return True
    login = user.github_login.lower()
    return user.is_active and bool(login) and login in {oncall.lower() for oncall in repository.oncalls}


@transaction.atomic
def acknowledge(
    *, job: Job, reason: str, expected_at: datetime.datetime, by: User, now: datetime.datetime
) -> Acknowledgement:
    """Say of a job that ended red that it is seen, why it is red, and by when it is expected to be mended. Its day is
    counted anew.

    Raises Problem: `not_permitted` (neither member nor oncall), `malformed` (no reason, a time that has passed or lies
    further off than policy.EXPECTED_WITHIN), `job_not_red`, `already_acknowledged` (by the same person).
    """
    repository = job.repository
    if not may_acknowledge(by, repository):
        raise Problem("not_permitted", f"Only who speaks for {repository.platform.name}, and its oncalls, acknowledge.")
    reason = written(reason, "reason", REASON_MAX)
    if not now < expected_at <= now + EXPECTED_WITHIN:
        raise Problem(
            "malformed",
            f"expected_at: saw {expected_at:%Y-%m-%d %H:%M} UTC, name a time in the next {EXPECTED_WITHIN.days} days.",
            "expected_at",
        )
    locked = Job.objects.select_for_update().get(pk=job.pk)
    if locked.bucket not in RED:
        raise Problem(
            "job_not_red", f"The job stands at {locked.get_bucket_display()}: there is nothing to answer for."
        )
    actor = actor_of(by)
    try:
        with transaction.atomic():
            made = Acknowledgement.objects.create(
                job=locked, by=by, by_label=actor.label, reason=reason, expected_at=expected_at, at=now
            )
    except IntegrityError:
        raise Problem("already_acknowledged", f"{actor.label} has acknowledged the job before.") from None
    day = locked.first_seen_at.astimezone(datetime.UTC).date()
    wake(JOB_CHANGED, [f"{repository.pk}:{day}"], now=now)
    record(
        action=Action.JOB_ACKNOWLEDGED,
        actor=actor,
        subject=Subject("job", str(job.public_id), str(job)),
        summary=f"{repository.full_name}: {job.short_name} is red, expected by {expected_at:%Y-%m-%d %H:%M} UTC",
        after={"expected_at": expected_at.isoformat(), "bucket": locked.bucket},
        reason=reason,
        now=now,
        is_decision=False,
    )
    return made
