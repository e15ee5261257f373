"""What another policy would do to today's field: who would lose a level, who could gain one."""

import datetime
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from apps.governance.evaluation import Evaluation, Verdict
from apps.governance.nights import evaluations_of
from apps.platforms.models import Repository
from apps.platforms.policy import LEVELS, OBSERVATION
from apps.policies.policy import Policy, Use


@dataclass(frozen=True)
class Effect:
    """One repository that another policy would judge otherwise."""

    repository: Repository
    level: int
    use: Use
    before: Evaluation
    after: Evaluation

    @property
    def says(self) -> str:
        """What would be otherwise, as in “would lose L3”."""
        return f"{_WORDS[self.use, self.after.verdict is Verdict.MET]} {LEVELS[self.level].code}"


_WORDS = {
    (Use.STAY, False): "would lose",
    (Use.STAY, True): "would keep",
    (Use.RISE, True): "would gain",
    (Use.RISE, False): "would miss",
}


def effects_of(policy: Policy, *, in_force: Policy, now: datetime.datetime) -> list[Effect]:
    """Every public repository whose result would be another, met or not, by level and name."""
    found = Repository.objects.filter(level__gte=OBSERVATION, is_probe=False).select_related("platform")
    listed = list(found.order_by("-level", "full_name"))
    before = evaluations_of(listed, now=now, policy=in_force, is_shown=True)
    after = evaluations_of(listed, now=now, policy=policy, is_shown=True)
    return [
        Effect(repository, old.level, old.use, old, new)
        for repository in listed
        for old, new in zip(before[repository.pk], after[repository.pk], strict=True)
        if (old.verdict is Verdict.MET) is not (new.verdict is Verdict.MET)
    ]


def summary(effects: Iterable[Effect]) -> str:
    """As in “2 would lose L3, 1 would gain L3”."""
    counts = Counter(effect.says for effect in effects)
    return ", ".join(f"{count} {says}" for says, count in sorted(counts.items())) or "nothing would change today"


def logged(effects: Iterable[Effect]) -> dict[str, Any]:
    """As the decision keeps it: by what would happen, the names."""
    effects = list(effects)
    return {
        says: ", ".join(effect.repository.full_name for effect in effects if effect.says == says)
        for says in sorted({effect.says for effect in effects})
    }
