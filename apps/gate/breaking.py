"""Verbs on breakers: the hub opens one and closes it by evidence, a maintainer closes it by a decision."""

import datetime
import json
from collections import defaultdict

from django.db import transaction
from django.db.models import Q

from apps.accounts.models import User
from apps.accounts.services import actor_of
from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.services import HUB, Actor, Subject, record
from apps.core.errors import Problem
from apps.core.ids import public_id
from apps.core.wakeups import wake
from apps.gate.breaker_policy import Blocked, Trip, is_proven, trip_of
from apps.gate.enums import Closed
from apps.gate.facts import facts_of
from apps.gate.models import BreakerTrip, StoredVerdict
from apps.gate.overriding import words_of
from apps.gate.policy import own_requirements
from apps.gate.rows import Question
from apps.gate.selectors import row_out
from apps.gate.services import SAID_WITHIN
from apps.gate.topics import BREAKER_CHANGED, BREAKER_SAID, GATE_ASKED
from apps.platforms.models import Repository
from apps.platforms.policy import MATURE
from apps.platforms.recusals import refuse_own
from apps.policies.policy import Policy
from apps.policies.selectors import policy_at
from apps.relay.enums import Bucket, Flag, JobStatus
from apps.relay.models import Delivery, Dispatch, Job
from apps.relay.policy import PULL_REQUEST, PUSH

# What a trip keeps of the rows that it stands on.
ROWS_KEPT = 100


def sweep(*, now: datetime.datetime) -> int:
    """Open and close what is to be, over all repositories that block. Returns how many breakers changed."""
    policy = policy_at(now)
    changed = 0
    for repository in Repository.objects.filter(level__gte=MATURE, is_probe=False).order_by("pk"):
        changed += look(repository, policy=policy, now=now)
    return changed


@transaction.atomic
def look(repository: Repository, *, policy: Policy, now: datetime.datetime) -> bool:
    """Open a repository's breaker, or close it, where that is due. Returns whether it did."""
    Repository.objects.select_for_update().get(pk=repository.pk)
    trip = BreakerTrip.objects.filter(repository=repository).order_by("-opened_at", "-pk").first()
    if trip is not None and trip.closed_at is None:
        if is_repeated(trip, policy) or not is_proven(_commits_of_main(trip, policy), policy.limits):
            return False
        why = f"It passed {policy.limits['breaker_close_runs']} commits of main in a row that it was sent since."
        _close(trip, by=Closed.EVIDENCE, why=why, actor=HUB, now=now)
        return True
    since = now - datetime.timedelta(hours=policy.limits["breaker_window_hours"])
    if trip is not None and trip.closed_at is not None:
        since = max(since, trip.closed_at)
    found = trip_of(blocked_by(repository, since=since, policy=policy, now=now), policy.limits)
    if found is None:
        return False
    _open(repository, found, policy, now)
    return True


def blocked_by(
    repository: Repository, *, since: datetime.datetime, policy: Policy, now: datetime.datetime
) -> list[Blocked]:
    """The pull requests whose newest head has an end of this repository since then that is no success, each with what
    its part asks for. A handful of queries."""
    ended = Job.objects.filter(repository=repository, pr_number__isnull=False, completed_at__gte=since)
    troubled = ended.filter(completed_at__lte=now).exclude(bucket=Bucket.SUCCESS)
    numbers = set(troubled.values_list("pr_number", flat=True))
    heads: dict[int, Delivery] = {}
    newest = Delivery.objects.filter(event=PULL_REQUEST, pr_number__in=numbers, received_at__lte=now)
    for delivery in newest.exclude(head_sha="").order_by("received_at", "pk"):
        heads[delivery.pr_number or 0] = delivery
    at_heads = set(troubled.values_list("pr_number", "head_sha"))
    asked = [one for number, one in sorted(heads.items()) if (number, one.head_sha) in at_heads]
    questions = [Question(one.head_sha, one.pr_number, now) for one in asked]
    found = facts_of(questions, base_commits=policy.limits["base_commits"], only=[repository.pk])
    return [
        Blocked(one.pr_number or 0, _author_of(one), tuple(own_requirements(facts.parts[0], policy, now)))
        for one, facts in zip(asked, found, strict=True)
        if facts is not None and facts.parts
    ]


def _author_of(delivery: Delivery) -> str:
    """Whose pull request it is, as GitHub's webhook says; '' unknown."""
    body = json.loads(delivery.body) if delivery.body else {}
    pull = body.get("pull_request") if isinstance(body, dict) else None
    author = pull.get("user") if isinstance(pull, dict) else None
    login = author.get("login") if isinstance(author, dict) else None
    return login.lower() if isinstance(login, str) else ""


def is_repeated(trip: BreakerTrip, policy: Policy) -> bool:
    """Whether it followed another so soon that only a decision closes it."""
    since = trip.opened_at - datetime.timedelta(days=policy.limits["breaker_repeat_days"])
    earlier = BreakerTrip.objects.filter(repository=trip.repository_id, opened_at__gte=since, overturned_at=None)
    return earlier.filter(opened_at__lt=trip.opened_at).exists()


def _commits_of_main(trip: BreakerTrip, policy: Policy) -> list[list[str]]:
    """The buckets of a repository's jobs on each commit of main that the hub sent it since its breaker opened and that
    it has answered whole, the checks that opened it among them, the newest first. What it runs on main by itself, on
    commits of its own choice, says nothing."""
    since = trip.opened_at - datetime.timedelta(hours=policy.limits["breaker_window_hours"])
    jobs = Job.objects.filter(repository=trip.repository_id)
    opened_it = jobs.filter(pr_number__isnull=False, completed_at__gte=since, completed_at__lte=trip.opened_at)
    checks = set(opened_it.exclude(bucket=Bucket.SUCCESS).values_list("workflow", "job_name"))
    sent = jobs.filter(dispatch__sent_at__gt=trip.opened_at, dispatch__delivery__event=PUSH)
    commits: dict[str, list[str]] = defaultdict(list)
    answered: dict[str, set[tuple[str, str]]] = defaultdict(set)
    unfinished = set()
    wanted = ("head_sha", "workflow", "job_name", "status", "bucket", "flags")
    for sha, workflow, name, status, bucket, flags in sent.order_by("-dispatch__sent_at", "-pk").values_list(*wanted):
        if Flag.HELD in flags:
            continue
        if status == JobStatus.IN_PROGRESS:
            unfinished.add(sha)
        commits[sha].append(bucket)
        answered[sha].add((workflow, name))
    return [buckets for sha, buckets in commits.items() if sha not in unfinished and checks <= answered[sha]]


def _subject(trip_id: object, repository: Repository) -> Subject:
    return Subject("breakertrip", str(trip_id), repository.full_name)


def _open(repository: Repository, found: Trip, policy: Policy, now: datetime.datetime) -> None:
    key = public_id()
    numbers = [one.pr_number for one in found.blocked]
    event = record(
        action=Action.BREAKER_OPENED,
        actor=HUB,
        subject=_subject(key, repository),
        summary=f"Breaker of {repository.full_name} opened: it blocks nothing until it closes",
        after={"kind": found.kind.value, "pull_requests": numbers, "policy": policy.number},
        reason=found.why,
        now=now,
    )
    rows = [row_out(row) for one in found.blocked for row in one.rows]
    BreakerTrip.objects.create(
        public_id=key,
        repository=repository,
        kind=found.kind,
        why=found.why,
        rows=rows[:ROWS_KEPT],
        policy_number=policy.number,
        opened_at=now,
        event_seq=event.seq,
    )
    _tell(repository, event, now)


@transaction.atomic
def close_breaker(*, trip: BreakerTrip, reason: str, by: User, now: datetime.datetime) -> None:
    """Give a repository its say back before evidence does. Raises Problem: `malformed` (no reason), `recusal`,
    `breaker_stale`."""
    reason = words_of(reason)
    refuse_own(by, trip.repository.platform)
    _close(trip, by=Closed.DECISION, why=reason, actor=actor_of(by), now=now)


def set_trip_aside(*, trip: BreakerTrip, now: datetime.datetime) -> None:
    """In the transaction of the appeal that overturns it: the trip counts for nothing from now on."""
    BreakerTrip.objects.filter(pk=trip.pk, overturned_at=None).update(overturned_at=now)


def _close(trip: BreakerTrip, *, by: Closed, why: str, actor: Actor, now: datetime.datetime) -> None:
    is_open = BreakerTrip.objects.filter(pk=trip.pk, closed_at=None)
    if is_open.update(closed_at=now, closed_by=by, closed_why=why) != 1:
        raise Problem("breaker_stale", f"The breaker of {trip.repository} is closed already.")
    event = record(
        action=Action.BREAKER_CLOSED,
        actor=actor,
        subject=_subject(trip.public_id, trip.repository),
        summary=f"Breaker of {trip.repository.full_name} closed: it blocks again",
        before={"opened_at": trip.opened_at.isoformat()},
        after={"by": by.value},
        reason=why,
        now=now,
    )
    _tell(trip.repository, event, now)


def _tell(repository: Repository, event: Event, now: datetime.datetime) -> None:
    """In the caller's transaction: check runs follow, people hear of it, and verdicts that its part may decide are said
    anew."""
    wake(BREAKER_CHANGED, [str(repository.pk)], now=now)
    wake(BREAKER_SAID, [str(event.seq)], now=now)
    say_anew(repository, now=now)


def say_anew(repository: Repository, *, now: datetime.datetime) -> None:
    """In the caller's transaction, or by itself: verdicts of late that a repository's part may decide are said anew."""
    since = now - SAID_WITHIN
    heard = Job.objects.filter(repository=repository, pr_number__isnull=False, first_seen_at__gte=since)
    sent = Dispatch.objects.filter(repository=repository, delivery__pr_number__isnull=False, created_at__gte=since)
    about = Q(sha__in=heard.values("head_sha")) | Q(sha__in=sent.values("delivery__head_sha"))
    said = StoredVerdict.objects.filter(about, at__gte=since)
    wake(GATE_ASKED, said.order_by("sha").values_list("sha", flat=True).distinct(), now=now)
