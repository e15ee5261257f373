"""The rules of promotions to L3 and L4: tables and pure functions. docs/levels.md and /policy/ print them."""

import datetime
from collections.abc import Collection
from dataclasses import dataclass

from apps.levels.enums import Form
from apps.platforms.policy import MATURE, STABLE
from apps.policies.policy import Policy

# Levels that are reached on a frozen bundle and approvals alone; the allowlist's import apart.
PROMOTED_TO = (STABLE, MATURE)
_APPROVALS = {STABLE: "approvals_l3", MATURE: "approvals_l4"}

RULES: dict[str, str] = {
    "frozen_first": "It is opened on evidence that meets every criterion, frozen and hashed.",
    "no_result_never_passes": "A criterion without a result is not met. A waiver stands in the bundle, and why.",
    "one_step_at_a_time": "It raises a repository by one level.",
    "maintainers_decide": "L3 takes approvals of so many maintainers, L4 of so many organisations, as the policy says.",
    "nobody_about_their_own": "Who opened it, who speaks for the platform, and their organisations do not decide.",
    "approvals_see_all": "An approval counts on the newest bundle, and after the newest objection.",
    "lazy_waits": "Without an objection it comes into force when the time for objections is over.",
    "objections_cite": "An objection names a criterion of the level, and makes the decision explicit.",
    "explicit_answers": "An explicit decision is in force with the last approval that is needed.",
    "old_evidence_decides_nothing": "What is too old, of another policy, or not met any more is frozen anew.",
    "notes_are_answered": "Where the set of jobs changed, or fewer tests ran, each approval says a word about it.",
}


@dataclass(frozen=True)
class Given:
    """One approval as the rules see it. `revision`: the promotion's, as it was when it was given."""

    revision: int
    organisation: int | None


@dataclass(frozen=True)
class Standing:
    """How far a promotion is: `counted` of `needed` approvals, and from when on it can be in force (None: at once)."""

    counted: int
    needed: int
    form: Form
    waits_until: datetime.datetime | None

    @property
    def is_approved(self) -> bool:
        return self.counted >= self.needed

    def is_due(self, now: datetime.datetime) -> bool:
        """Whether it comes into force."""
        return self.is_approved and (self.waits_until is None or now >= self.waits_until)


def standing(
    *,
    target: int,
    policy: Policy,
    form: Form,
    revision: int,
    approvals: Collection[Given],
    objections_until: datetime.datetime,
) -> Standing:
    """Count approvals: those that saw the newest evidence and every objection; for L4 one for each organisation, and
    none without one."""
    counting = [one for one in approvals if one.revision == revision]
    counted = len(counting)
    if target == MATURE:
        counted = len({one.organisation for one in counting if one.organisation is not None})
    waits = objections_until if form is Form.LAZY else None
    return Standing(counted, policy.limits[_APPROVALS[target]], form, waits)
