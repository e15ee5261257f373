"""Waivers: narrow, with a reason and an end, and counted on /fairness/."""

import datetime
from collections import defaultdict
from collections.abc import Iterable

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from apps.accounts.models import User
from apps.accounts.services import actor_of
from apps.audit.enums import Action
from apps.audit.services import Subject, record
from apps.core.errors import Problem, written
from apps.governance.models import Waiver
from apps.platforms.models import Repository
from apps.platforms.recusals import refuse_own
from apps.policies.policy import Policy
from apps.policies.selectors import policy_at

REASON_MAX = 2_000


@transaction.atomic
def grant_waiver(
    *,
    repository: Repository,
    criterion: str,
    reason: str,
    until_at: datetime.datetime,
    by: User,
    now: datetime.datetime,
) -> Waiver:
    """Let one criterion not count for one repository until then.

    Raises Problem: `malformed` (no reason, a criterion that the policy has not, an end in the past or too far),
    `recusal`, `already_waived`.
    """
    policy = policy_at(now)
    refuse_own(by, repository.platform)
    reason = written(reason, "reason", REASON_MAX)
    if criterion not in waivable(policy):
        raise Problem("malformed", f"criterion: saw {criterion[:60]!r}, which no policy row is.", "criterion")
    latest = now + datetime.timedelta(days=policy.limits["waiver_days_max"])
    if not now < until_at <= latest:
        span = f"send a moment up to {latest:%Y-%m-%d %H:%M}."
        raise Problem("malformed", f"until_at: saw {until_at:%Y-%m-%d %H:%M}, {span}", "until_at")
    event = record(
        action=Action.WAIVER_GRANTED,
        actor=actor_of(by),
        subject=Subject("repository", str(repository.public_id), repository.full_name),
        summary=f"{criterion} waived for {repository.full_name} until {until_at:%Y-%m-%d}",
        after={"criterion": criterion, "until": until_at.isoformat()},
        reason=reason,
        evidence={"policy": policy.number},
        now=now,
    )
    try:
        with transaction.atomic():
            return Waiver.objects.create(
                repository=repository,
                criterion=criterion,
                reason=reason,
                by=by.get_username(),
                from_at=now,
                until_at=until_at,
                event_seq=event.seq,
            )
    except IntegrityError:
        raise Problem("already_waived", f"A waiver of {criterion} holds for {repository.full_name}.") from None


@transaction.atomic
def withdraw_waiver(*, waiver: Waiver, reason: str, by: User, now: datetime.datetime) -> None:
    """Let a waiver end at once. Raises Problem: `malformed` (no reason), `recusal`, `waiver_stale`."""
    refuse_own(by, waiver.repository.platform)
    reason = written(reason, "reason", REASON_MAX)
    holding = Waiver.objects.filter(pk=waiver.pk, withdrawn_at=None, until_at__gt=now)
    if holding.update(withdrawn_at=now) != 1:
        raise Problem("waiver_stale", "The waiver was withdrawn or has run out.")
    record(
        action=Action.WAIVER_WITHDRAWN,
        actor=actor_of(by),
        subject=Subject("repository", str(waiver.repository.public_id), waiver.repository.full_name),
        summary=f"Waiver of {waiver.criterion} for {waiver.repository.full_name} withdrawn",
        before={"criterion": waiver.criterion, "until": waiver.until_at.isoformat()},
        reason=reason,
        evidence={"decision": waiver.event_seq},
        now=now,
    )


def waivable(policy: Policy) -> list[str]:
    """The criteria that a waiver can name: those with a number. What people judge they can accept as it is."""
    return [row.key for row in policy.criteria if not row.of.is_evidence]


def holding(*, now: datetime.datetime) -> QuerySet[Waiver]:
    """The waivers that hold, the latest first."""
    found = Waiver.objects.filter(from_at__lte=now, until_at__gt=now, withdrawn_at=None)
    return found.select_related("repository__platform").order_by("-from_at", "-pk")


def waivers_of(repositories: Iterable[Repository], *, now: datetime.datetime) -> dict[int, dict[str, str]]:
    """By repository (primary key): by criterion, the words of the waiver that holds. One query."""
    words: dict[int, dict[str, str]] = defaultdict(dict)
    for waiver in holding(now=now).filter(repository__in=[repository.pk for repository in repositories]):
        words[waiver.repository_id][waiver.criterion] = f"{waiver.reason} (until {waiver.until_at:%Y-%m-%d})"
    return words
