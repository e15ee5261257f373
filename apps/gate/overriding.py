"""Verbs on overrides: grant and withdraw. Each leaves a decision in the log."""

import datetime

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import actor_of
from apps.audit.enums import Action
from apps.audit.services import Subject, record
from apps.core.errors import Problem
from apps.core.ids import public_id
from apps.core.wakeups import wake
from apps.gate.models import Override
from apps.gate.topics import GATE_ASKED, GATE_CHANGED
from apps.platforms.models import Platform, Repository
from apps.platforms.policy import MATURE
from apps.platforms.recusals import refuse_own
from apps.policies.selectors import policy_at
from apps.relay.models import Delivery
from apps.relay.policy import PULL_REQUEST

REASON_MAX = 2_000


@transaction.atomic
def grant_override(
    *,
    pr_number: int,
    sha: str = "",
    repository: Repository | None,
    reason: str,
    until: datetime.datetime,
    by: User,
    now: datetime.datetime,
) -> Override:
    """Let a blocking repository's part of a pull request pass until a moment, or all parts where none is named; with a
    sha for that head alone.

    Raises Problem: `malformed` (no reason, an end that has passed or lies further off than the policy's
    override_hours_max, a pull request or head that the hub does not know, a repository that does not block), `recusal`.
    """
    reason = words_of(reason)
    most = policy_at(now).limits["override_hours_max"]
    if not now < until <= now + datetime.timedelta(hours=most):
        raise Problem(
            "malformed", f"until: saw {until:%Y-%m-%d %H:%M} UTC, name a moment in the next {most} h.", "until"
        )
    heads = Delivery.objects.filter(event=PULL_REQUEST, pr_number=pr_number).exclude(head_sha="")
    shas = list(heads.order_by("-received_at", "-pk").values_list("head_sha", flat=True))
    if not shas:
        raise Problem("malformed", f"pr: the hub knows no pull request #{pr_number}.", "pr")
    if sha and sha not in shas:
        raise Problem("malformed", f"sha: {sha[:40]} is no head of #{pr_number} that the hub knows.", "sha")
    if repository is not None and (repository.level < MATURE or repository.is_probe):
        raise Problem(
            "malformed", f"repository: {repository} does not block, there is nothing to override.", "repository"
        )
    refuse_own(by, *_platforms(repository))
    actor, key = actor_of(by), public_id()
    scope = f"{repository or 'all parts'} on #{pr_number}{f' at {sha[:12]}' if sha else ''}"
    event = record(
        action=Action.OVERRIDE_GRANTED,
        actor=actor,
        subject=Subject("override", str(key), scope),
        summary=f"Gate overridden for {scope} until {until:%Y-%m-%d %H:%M} UTC",
        after={"pr": pr_number, "sha": sha, "repository": str(repository or ""), "until": until.isoformat()},
        reason=reason,
        now=now,
    )
    made = Override.objects.create(
        public_id=key,
        pr_number=pr_number,
        sha=sha,
        repository=repository,
        reason=reason,
        by=by,
        by_label=actor.label,
        from_at=now,
        until=until,
        event_seq=event.seq,
    )
    _tell(sha or shas[0], now)
    return made


@transaction.atomic
def withdraw_override(*, override: Override, reason: str, by: User, now: datetime.datetime) -> None:
    """End an override before its time. Raises Problem: `malformed` (no reason), `recusal`, `override_stale`."""
    reason = words_of(reason)
    refuse_own(by, *_platforms(override.repository))
    actor = actor_of(by)
    holds = Override.objects.filter(pk=override.pk, withdrawn_at=None, until__gt=now)
    if holds.update(withdrawn_at=now, withdrawn_by=actor.label, withdrawal=reason) != 1:
        raise Problem("override_stale", "The override is withdrawn, or over.")
    record(
        action=Action.OVERRIDE_WITHDRAWN,
        actor=actor,
        subject=Subject("override", str(override.public_id), str(override)),
        summary=f"Override of {override} withdrawn",
        before={"until": override.until.isoformat()},
        after={"until": now.isoformat()},
        reason=reason,
        now=now,
    )
    heads = Delivery.objects.filter(event=PULL_REQUEST, pr_number=override.pr_number).exclude(head_sha="")
    newest = heads.order_by("-received_at", "-pk").values_list("head_sha", flat=True).first()
    _tell(override.sha or newest or "", now)


def _platforms(repository: Repository | None) -> set[Platform]:
    """Whose part an override is about: all that block where no repository is named."""
    if repository is not None:
        return {repository.platform}
    blocking = Repository.objects.filter(level__gte=MATURE, is_probe=False)
    return {one.platform for one in blocking.select_related("platform")}


def _tell(sha: str, now: datetime.datetime) -> None:
    """In the caller's transaction: check runs follow, and the verdict is said anew."""
    for topic in (GATE_CHANGED, GATE_ASKED):
        wake(topic, [sha], now=now)


def words_of(reason: str) -> str:
    """A reason without the white space around it. Raises Problem `malformed`."""
    reason = reason.strip()
    if not reason or len(reason) > REASON_MAX:
        raise Problem("malformed", f"reason: saw {len(reason)} characters, write 1 to {REASON_MAX}.", "reason")
    return reason
