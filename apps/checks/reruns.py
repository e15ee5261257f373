"""Verbs on re-runs: “re-run” was pressed at GitHub, and a downstream's run is run again, once."""

import datetime

from django.db import transaction

from apps.checks import outbox, policy, webhooks
from apps.checks.enums import Scope, SendState
from apps.checks.models import Check, Rerun
from apps.checks.selectors import may_publish
from apps.checks.services import lock, send_anew
from apps.checks.topics import RERUN_PENDING
from apps.core import clock
from apps.core.github import GitHubRefused, GitHubUnavailable, client
from apps.core.outbox import WORDS_MAX
from apps.core.text import storable
from apps.core.wakeups import wake
from apps.platforms.models import Repository
from apps.relay.models import Delivery
from apps.relay.selectors import ran_on_buildkite


@transaction.atomic
def request_reruns(*, delivery_pk: int, now: datetime.datetime) -> int:
    """Keep what a `rerequested` webhook asks for: of a check run its run's failed jobs, of a suite each run behind our
    check runs of the commit. Returns how many re-runs are to be sent.

    Below L3, and of a build on Buildkite, it is refused: the row says why, and so does the check run. A second click
    within RERUN_ABSORBED means the first, and leaves no row.
    """
    delivery = Delivery.objects.get(pk=delivery_pk)
    asked, scope = webhooks.asked_of(delivery), policy.SCOPES[delivery.event]
    lock(asked.head_sha)
    checks = Check.objects.filter(head_sha=asked.head_sha).select_related("repository").order_by("pk")
    if scope is Scope.FAILED_JOBS:
        checks = checks.filter(github_id=asked.github_id)
    runs = {(check.repository, check.run_id): None for check in checks if scope is Scope.FAILED_JOBS or check.run_id}
    made = [_request(repository, run_id, asked, delivery, now) for repository, run_id in runs]
    pending = [str(row.pk) for row in made if row and row.state == SendState.PENDING]
    wake(RERUN_PENDING, pending, now=now)
    return len(pending)


def _request(
    repository: Repository, run_id: str, asked: webhooks.Asked, delivery: Delivery, now: datetime.datetime
) -> Rerun | None:
    same = Rerun.objects.filter(repository=repository, run_id=run_id).exclude(state=SendState.REFUSED)
    waits = same.filter(state__in=[SendState.PENDING, SendState.SENDING])
    just_sent = same.filter(state=SendState.SENT, created_at__gt=now - policy.RERUN_ABSORBED)
    if waits.exists() or just_sent.exists():
        return None
    is_of_buildkite = ran_on_buildkite(repository, head_sha=asked.head_sha, run_id=run_id)
    refusal = policy.refuse_rerun(repository.level, run_id, is_of_buildkite=is_of_buildkite)
    row = Rerun.objects.create(
        repository=repository,
        head_sha=asked.head_sha,
        run_id=run_id,
        scope=policy.SCOPES[delivery.event],
        delivery_id=delivery.delivery_id,
        requested_by=asked.by,
        state=SendState.REFUSED if refusal else SendState.PENDING,
        error=refusal or "",
        created_at=now,
        next_attempt_at=clock.real(now),
        changed_at=clock.real(now),
    )
    if refusal:
        _tell(row, f"The re-run was refused. {refusal}", now)
    return row


def _tell(rerun: Rerun, note: str, now: datetime.datetime) -> None:
    """Say on the check runs of a run why it is not run again."""
    told = Check.objects.filter(repository=rerun.repository, head_sha=rerun.head_sha, run_id=rerun.run_id)
    for check in told.exclude(note=note):
        send_anew(check, now=now, note=storable(note, WORDS_MAX))


def send_rerun(*, rerun_pk: int, now: datetime.datetime) -> SendState | None:
    """Ask GitHub to run a downstream's run again. Returns its new state; None when it was not there to be sent.

    A run that is not over runs anyway, so that refusal is as good as a yes. Any other one is given up, and said on the
    check runs with GitHub's words. Not reached: pending again.
    """
    rerun = outbox.take(Rerun, rerun_pk, now=now) if may_publish() else None
    if rerun is None:
        return None
    try:
        client().rerun(rerun.repository.full_name, rerun.run_id, rerun.scope)
    except GitHubUnavailable as problem:
        left = outbox.after_failure(rerun, asked=problem.wait_seconds, now=clock.now())
        outbox.finish(rerun, now=clock.now(), error=str(problem), **left)
        return left["state"]
    except GitHubRefused as problem:
        if not policy.is_already_running(problem.status, str(problem)):
            return _give_up(rerun, str(problem), clock.now())
    outbox.finish(rerun, now=clock.now(), state=SendState.SENT, sent_at=clock.now())
    return SendState.SENT


@transaction.atomic
def _give_up(rerun: Rerun, error: str, now: datetime.datetime) -> SendState | None:
    lock(rerun.head_sha)
    if not outbox.finish(rerun, now=now, error=error, state=SendState.GIVEN_UP):
        return None
    _tell(rerun, f"The re-run failed. {policy.code(error)}", now)
    return SendState.GIVEN_UP
