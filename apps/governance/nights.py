"""Holding the whole field against the policy: nightly, kept; and at any moment, for a page or a decision."""

import datetime
from collections.abc import Iterable

from django.db import transaction

from apps.governance.evaluation import Evaluation, evaluate
from apps.governance.facts import facts_of, notes_of
from apps.governance.models import NightlyEvaluation
from apps.governance.waiving import waivers_of
from apps.platforms.models import Repository
from apps.platforms.policy import MATURE, OBSERVATION, ONBOARDING
from apps.policies.policy import Policy, Use
from apps.policies.selectors import policy_at

# The measure that a replay gives.
REPLAYED = "wrongly_blocked_rate"


def evaluations_of(
    repositories: Iterable[Repository],
    *,
    now: datetime.datetime,
    policy: Policy | None = None,
    shown_by: Iterable[str] = (),
    is_shown: bool = False,
) -> dict[int, list[Evaluation]]:
    """By repository (primary key): what reaching the next level asks for, then what staying asks for. Under the policy
    in force, or another one. A fixed number of queries, and a replay for each repository of which one is asked.
    `is_shown`: only shown, not decided by: a replay may be of a while ago."""
    listed = list(repositories)
    policy = policy or policy_at(now)
    replayed = {repository.pk: _replay_days(repository.level, policy) for repository in listed}
    facts = facts_of(listed, now=now, replayed=replayed, is_shown=is_shown)
    notes, waivers = notes_of(listed, now=now), waivers_of(listed, now=now)
    return {
        repository.pk: [
            evaluate(
                level,
                use,
                policy=policy,
                facts=facts[repository.pk],
                shown_by=shown_by,
                waivers=waivers.get(repository.pk),
                notes=notes.get(repository.pk, ()),
            )
            for level, use in asked_of(repository.level)
        ]
        for repository in listed
    }


def asked_of(level: int) -> list[tuple[int, Use]]:
    """The levels and uses that are evaluated at a level."""
    rise = [(level + 1, Use.RISE)] if ONBOARDING <= level < MATURE else []
    return rise + ([(level, Use.STAY)] if level >= OBSERVATION else [])


def _replay_days(level: int, policy: Policy) -> int:
    """Over how many days a replay is asked for at a level; 0: by no criterion."""
    asked = [criterion for reached, use in asked_of(level) for criterion in policy.of(reached, use)]
    return max((one.window_days for one in asked if one.measure == REPLAYED), default=0)


@transaction.atomic
def evaluate_field(*, now: datetime.datetime) -> int:
    """Evaluate every listed repository for this UTC day and keep it. What is kept of the day stays. Returns how many
    rows were new."""
    listed = list(Repository.objects.filter(level__gte=ONBOARDING, is_probe=False).order_by("pk"))
    day = now.astimezone(datetime.UTC).date()
    found = evaluations_of(listed, now=now)
    rows = [
        NightlyEvaluation(
            repository=repository,
            day=day,
            level=one.level,
            use=one.use,
            verdict=one.verdict,
            sentence=one.sentence,
            results=[result.written() for result in one.results],
            notes=list(one.notes),
            policy_number=one.policy_number,
            evaluated_at=now,
        )
        for repository in listed
        for one in found[repository.pk]
    ]
    before = NightlyEvaluation.objects.filter(day=day).count()
    NightlyEvaluation.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
    return NightlyEvaluation.objects.filter(day=day).count() - before


def nights(repository: Repository, *, use: Use, level: int, days: int) -> list[NightlyEvaluation]:
    """The newest nights of a repository for one level and use, newest first."""
    return list(NightlyEvaluation.objects.filter(repository=repository, use=use, level=level).order_by("-day")[:days])
