"""A token's ids and name against those that its repository was pinned to, and what a new owner sends: held."""

import contextlib
import datetime
from collections.abc import Iterator

from django.db import transaction

from apps.audit.models import Event
from apps.audit.services import Actor
from apps.core.errors import Problem
from apps.core.wakeups import wake
from apps.platforms.models import Repository, Transfer
from apps.platforms.policy import CHECKS_FROM
from apps.platforms.renames import hold, note_name, settle
from apps.platforms.selectors import Standing
from apps.relay.claims import Identity
from apps.relay.enums import Flag
from apps.relay.models import Job
from apps.relay.selectors import held_jobs
from apps.relay.topics import JOB_CHANGED, JOB_FOR_CHECKS


def is_pinned(identity: Identity, standing: Standing) -> bool:
    """Whether an identity has the ids that its repository was pinned to; a pipeline was mapped to it by people."""
    said = (identity.repository_id, identity.owner_id)
    return identity.pipeline is not None or said == (standing.github_id, standing.github_owner_id)


def is_held(identity: Identity, standing: Standing, now: datetime.datetime) -> bool:
    """Whether what this identity says is held: its repository is the pinned one, under an owner that nobody has
    accepted yet. Another name under the same owner is the same repository, and GitHub is asked to confirm it.

    Raises Problem `identity_replaced`: another id under a listed name, or an owner that was refused.
    """
    if identity.repository_id is None or identity.owner_id is None or standing.github_id is None:
        return False
    pinned = (standing.github_id, standing.github_owner_id)
    said = (identity.repository_id, identity.owner_id)
    if identity.repository_id != standing.github_id:
        raise _replaced(standing, said)
    if said == pinned:
        if identity.repository.lower() != standing.full_name.lower():
            note_name(
                repository_id=standing.repository_id,
                old_name=standing.full_name,
                new_name=identity.repository,
                now=now,
            )
        return False
    state = hold(
        repository_id=standing.repository_id,
        old_owner_id=standing.github_owner_id or 0,
        new_owner_id=identity.owner_id,
        new_name=identity.repository,
        now=now,
    )
    if state is Transfer.State.REFUSED:
        raise _replaced(standing, said)
    return state is Transfer.State.OPEN


@contextlib.contextmanager
def undecided(repository_id: int, identity: Identity) -> Iterator[bool]:
    """Whether this identity's owner still waits for a decision; the decision waits until the block is left, so that it
    sees what is written as held here."""
    with transaction.atomic():
        repository = Repository.objects.select_for_update().get(pk=repository_id)
        yield repository.github_owner_id != identity.owner_id


def _replaced(standing: Standing, said: tuple[int, int]) -> Problem:
    return Problem(
        "identity_replaced",
        f"repository_id, repository_owner_id: {standing.full_name} was listed as id {standing.github_id} of "
        f"owner {standing.github_owner_id}; this token says {said[0]} of {said[1]}.",
        "repository_id",
    )


@transaction.atomic
def decide_transfer(
    *, transfer: Transfer, is_accepted: bool, reason: str, actor: Actor, now: datetime.datetime
) -> Event:
    """Accept a repository's new owner: it is pinned, and the held jobs count from now on. Or refuse it: what was held
    counts nowhere, and what it sends from now on is refused. A refusal can be turned into acceptance later.

    Returns the decision. Raises Problem: `malformed` (no reason), `transfer_stale`.
    """
    # The repository's row first, as everywhere: a new hold waits for this decision.
    Repository.objects.select_for_update().get(pk=transfer.repository_id)
    found = held_jobs(transfer).order_by().values_list("pk", flat=True)
    held = list(Job.objects.select_for_update().filter(pk__in=list(found)).order_by("pk"))
    if is_accepted:
        for job in held:
            job.flags.remove(Flag.HELD)
            job.revision += 1  # a callback that read the job before this reads it again
        Job.objects.bulk_update(held, ["flags", "revision"], batch_size=500)
        if transfer.repository.level >= CHECKS_FROM:
            shown = [f"{job.pk}:{job.revision}" for job in held if job.pr_number is not None]
            wake(JOB_FOR_CHECKS, shown, now=now)
        # A job's later attempts change the count of the days of its earlier ones.
        runs = {(job.delivery_id, job.run_id) for job in held}
        of_runs = Job.objects.filter(repository=transfer.repository, run_id__in={run_id for _, run_id in runs})
        days = {
            seen_at.astimezone(datetime.UTC).date()
            for delivery_id, run_id, seen_at in of_runs.values_list("delivery_id", "run_id", "first_seen_at")
            if (delivery_id, run_id) in runs
        }
        # Today too: what else waits for the decision, such as reports, is told of it by this.
        days.add(now.astimezone(datetime.UTC).date())
        wake(JOB_CHANGED, [f"{transfer.repository_id}:{day}" for day in sorted(days)], now=now)
    return settle(
        transfer=transfer,
        is_accepted=is_accepted,
        reason=reason,
        evidence={"held_jobs": len(held)},
        actor=actor,
        now=now,
    )
