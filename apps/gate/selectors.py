"""What the gate says: computed from the rows as they stood at a moment, for every edge and for the rooms above."""

import datetime
import hashlib
import json
import re
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db.models import Count, F, QuerySet
from django.db.models.functions import TruncDate
from django.http import Http404

from apps.core.errors import Problem
from apps.gate.enums import Effect
from apps.gate.facts import facts_of
from apps.gate.models import BreakerTrip, Override, StoredVerdict
from apps.gate.policy import Answer, Facts, Requirement, Row, answer, part_effect, requirements_of
from apps.gate.rows import Question
from apps.platforms.models import Repository
from apps.policies.policy import Policy, written
from apps.policies.selectors import policy_at
from apps.relay.enums import DeliveryState
from apps.relay.models import Delivery, Job
from apps.relay.policy import PULL_REQUEST, PUSH

# So many rows of a requirement are kept and told; `rows_total` says how many there are.
ROWS_MAX = 100
_SHA = re.compile(r"[0-9a-f]{7,40}")
_KNOWN = (DeliveryState.FANNED_OUT, DeliveryState.RECEIVED)
# What a policy says that the gate reads.
_READ_LIMITS = ("base_commits",)


@dataclass(frozen=True)
class Told:
    """What the gate says of a commit as of a moment, by which policy, and the digest of all that it looked at."""

    sha: str
    pr_number: int | None
    at: datetime.datetime
    policy: Policy
    facts: Facts
    answer: Answer

    @cached_property
    def inputs_hash(self) -> str:
        """SHA-256 over the canonical JSON of the facts and of what the policy says for the gate."""
        says = written(self.policy)
        read = {name: says["limits"][name] for name in _READ_LIMITS}
        policy = {"number": self.policy.number, "handling": says["handling"], "limits": read}
        text = json.dumps({"facts": self.facts, "policy": policy}, default=_plain, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def requirements(self) -> list[dict[str, Any]]:
        """Its requirements as the API tells them and a stored verdict keeps them."""
        return [requirement_out(one) for one in self.answer.requirements]


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime.datetime) else vars(value)


def question_of(*, sha: str = "", pr_number: int | None = None, at: datetime.datetime) -> Question:
    """The commit that is meant: a pull request's newest head by then, or a sha (seven characters or more), as the head
    of its newest pull request. Raises Problem: `malformed`, `not_found`."""
    if sha and not _SHA.fullmatch(sha):
        raise Problem("malformed", f"sha: saw {sha[:60]!r}, send 7 to 40 hexadecimal characters.", "sha")
    if not sha and pr_number is None:
        raise Problem("malformed", "sha, pr: neither is there, send one of them.", "sha")
    told = Delivery.objects.filter(state__in=_KNOWN, received_at__lte=at).exclude(head_sha="")
    relayed = Job.objects.filter(dispatch=None, pr_number__isnull=False, first_seen_at__lte=at).exclude(head_sha="")
    if sha:
        told, relayed = told.filter(head_sha__startswith=sha), relayed.filter(head_sha__startswith=sha)
    if pr_number is not None:
        told = told.filter(event=PULL_REQUEST, pr_number=pr_number)
        relayed = relayed.filter(pr_number=pr_number)
    else:
        told = told.filter(event__in=(PULL_REQUEST, PUSH))
    newest = told.order_by("-received_at", "-pk").values_list("head_sha", "pr_number").first()
    newest = newest or relayed.order_by("-first_seen_at", "-pk").values_list("head_sha", "pr_number").first()
    if newest is None:
        what = f"commit {sha}" if sha else f"pull request #{pr_number}"
        raise Problem("not_found", f"The hub had not been told of {what} by {at:%Y-%m-%d %H:%M} UTC.")
    return Question(newest[0], newest[1], at)


def told_of(question: Question) -> Told | None:
    """What the gate says of one commit; None where the hub had not been told of it."""
    policy = policy_at(question.at)
    (facts,) = facts_of([question], base_commits=policy.limits["base_commits"])
    return None if facts is None else told_by(facts, policy, question.at)


def told_by(facts: Facts, policy: Policy, at: datetime.datetime) -> Told:
    """What the gate says of facts."""
    return Told(facts.sha, facts.pr_number, at, policy, facts, answer(facts, policy, at))


@dataclass(frozen=True)
class PartTold:
    """What the gate says of one repository's part: the worst of its requirements, which lead."""

    effect: Effect
    requirements: tuple[Requirement, ...]

    @property
    def leading(self) -> Requirement:
        return next(one for one in self.requirements if one.effect is self.effect)


def part_of(repository: Repository, *, sha: str, pr_number: int, at: datetime.datetime) -> PartTold | None:
    """What the gate says of a repository's part of a pull request's head; None where it has none."""
    policy = policy_at(at)
    (facts,) = facts_of(
        [Question(sha, pr_number, at)], base_commits=policy.limits["base_commits"], only=[repository.pk]
    )
    if facts is None or not facts.parts:
        return None
    requirements = requirements_of(facts.parts[0], policy, at)
    return PartTold(part_effect(requirements), tuple(requirements))


def parts_told(
    questions: Sequence[Question], *, policy: Policy, as_blocking: Collection[int]
) -> list[tuple[Question, Told | None]]:
    """What the gate would have said of many commits at once, had these repositories (primary keys) been blocking: no
    other part is looked at."""
    found = facts_of(questions, base_commits=policy.limits["base_commits"], as_blocking=as_blocking, only=as_blocking)
    return [
        (question, None if facts is None else told_by(facts, policy, question.at))
        for question, facts in zip(questions, found, strict=True)
    ]


# --- as it is told ----------------------------------------------------------------------------------------------


def requirement_out(one: Requirement) -> dict[str, Any]:
    """A requirement as the API tells it and a stored verdict keeps it."""
    return {
        "type": one.type.value,
        "effect": one.effect.value,
        "repository": one.repository,
        "level": f"L{one.level}",
        "outcome": one.outcome,
        "sentence": one.sentence,
        "rows": [row_out(row) for row in one.rows[:ROWS_MAX]],
        "rows_total": len(one.rows),
    }


def row_out(row: Row) -> dict[str, str]:
    """One row behind a requirement; `url` is a path on this hub, or somewhere else."""
    return {"kind": row.kind.value, "label": row.label, "url": row.url}


def absolute(requirement: dict[str, Any]) -> dict[str, Any]:
    """A requirement with whole addresses, for programs."""
    rows = [row | {"url": settings.BASE_URL + row["url"]} for row in requirement["rows"]]
    return requirement | {"rows": rows}


# --- what is kept -----------------------------------------------------------------------------------------------


def stored_at(question: Question) -> StoredVerdict | None:
    """What the gate had said of a commit last, by a moment."""
    found = StoredVerdict.objects.filter(sha=question.sha, pr_number=question.pr_number, at__lte=question.at)
    return found.order_by("-at", "-pk").first()


def overrides() -> QuerySet[Override]:
    """Every override, the newest first: the ledger is public."""
    return Override.objects.select_related("repository__platform")


def overrides_of(pr_number: int) -> QuerySet[Override]:
    """A pull request's."""
    return overrides().filter(pr_number=pr_number)


def open_trips() -> QuerySet[BreakerTrip]:
    """Breakers that are open, the newest first."""
    return BreakerTrip.objects.filter(closed_at=None).select_related("repository__platform")


def all_trips() -> QuerySet[BreakerTrip]:
    """Every trip, those that are open first, then the newest."""
    found = BreakerTrip.objects.select_related("repository__platform")
    return found.order_by(F("closed_at").desc(nulls_first=True), "-pk")


def trip_or_404(public_id: uuid.UUID) -> BreakerTrip:
    """A trip: all are public."""
    found = all_trips().filter(public_id=public_id).first()
    if found is None:
        raise Http404
    return found


def trips_by_day(
    repositories: Iterable[int], *, since: datetime.date, until: datetime.date
) -> dict[int, dict[datetime.date, int]]:
    """By repository (primary key, each of those that are asked for) how often its breaker opened, by UTC day, from
    `since` to `until`: the policy's measure `breaker_trips`. One that an appeal overturned counts no more."""
    found: dict[int, dict[datetime.date, int]] = {pk: {} for pk in repositories}
    counting = BreakerTrip.objects.filter(repository__in=found, overturned_at=None)
    of_days = counting.annotate(day=TruncDate("opened_at", tzinfo=datetime.UTC))
    counted = of_days.filter(day__gte=since, day__lte=until).order_by().values_list("repository", "day")
    for pk, day, count in counted.annotate(Count("pk")):
        found[pk][day] = count
    return found


def overrides_found(given: dict[str, Any]) -> QuerySet[Override]:
    """Of all overrides those of a pull request (`pr`), or of repositories with these words in their name."""
    found = overrides()
    if pr := given.get("pr"):
        found = found.filter(pr_number=pr)
    if words := given.get("repository"):
        found = found.filter(repository__full_name__icontains=words)
    return found


def override_or_404(public_id: uuid.UUID) -> Override:
    """An override: all are public."""
    found = overrides().filter(public_id=public_id).first()
    if found is None:
        raise Http404
    return found
