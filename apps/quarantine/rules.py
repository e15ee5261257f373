"""Which rule set holds at a moment, and putting another in force from a date."""

import datetime
from dataclasses import asdict, dataclass
from typing import Any

from django.db import IntegrityError, transaction

from apps.audit.enums import Action
from apps.audit.services import Actor, Subject, record
from apps.core.errors import Problem, written
from apps.quarantine.models import RuleVersion
from apps.quarantine.policy import HUB, SHIPPED, Rules, rules_of
from apps.quarantine.rule_table import shown

REASON_MAX = 2_000


def version_at(at: datetime.datetime) -> RuleVersion | None:
    """The version that holds at a moment; None: the set that ships."""
    return RuleVersion.objects.filter(from_at__lte=at).order_by("-from_at").first()


def in_force(at: datetime.datetime) -> Rules:
    """The rule set that holds at a moment."""
    version = version_at(at)
    return HUB if version is None else rules_of(version.values)


def versions() -> list[RuleVersion]:
    """Every set that was put in force or is to be, the latest first."""
    return list(RuleVersion.objects.all())


@dataclass(frozen=True)
class Step:
    """A set, and which rules it changed: (rule, before, after) as people read them."""

    version: RuleVersion
    changed: list[tuple[str, str, str]]


def history() -> list[Step]:
    """Every set with what it changed in the one before it, the latest first."""
    steps, before = [], HUB
    for version in reversed(versions()):
        after = rules_of(version.values)
        changed = [(name, shown(name, before), shown(name, after)) for name in differing(before, after)]
        steps.append(Step(version, changed))
        before = after
    return steps[::-1]


def read_rules(values: dict[str, Any]) -> Rules:
    """A rule set as somebody wrote it. Raises Problem `malformed` by field."""
    try:
        return rules_of(values)
    except ValueError as error:
        raise Problem("malformed", str(error), str(error).partition(":")[0]) from None


def differing(before: Rules, after: Rules) -> list[str]:
    """The rules of which two sets say different things."""
    return [name for name, value in asdict(after).items() if value != getattr(before, name)]


@transaction.atomic
def put_rules_in_force(
    *, values: dict[str, Any], from_at: datetime.datetime, reason: str, actor: Actor, now: datetime.datetime
) -> RuleVersion:
    """Let a rule set hold from a moment on, never before now. What was decided before keeps its rules.

    Raises Problem `malformed` by field: a set that contradicts itself or that holds then anyway, no reason, a date that
    has passed or is taken.
    """
    reason = written(reason, "reason", REASON_MAX)
    if from_at < now:
        raise Problem("malformed", f"from_at: {from_at:%Y-%m-%d %H:%M} has passed, name a later moment.", "from_at")
    rules = read_rules(values)
    shipped = next((key for key, known in SHIPPED.items() if known == rules), "")
    before = in_force(from_at)
    changed = differing(before, rules)
    if not changed:
        raise Problem("malformed", "values: this is the set that holds then already, change a rule.", "values")
    try:
        with transaction.atomic():
            version = RuleVersion.objects.create(
                shipped=shipped, values=asdict(rules), from_at=from_at, reason=reason, by=actor.label, created_at=now
            )
    except IntegrityError:
        raise Problem("malformed", "from_at: another set begins at that moment, name another.", "from_at") from None
    record(
        action=Action.RULES_CHANGED,
        actor=actor,
        subject=Subject("ruleversion", str(version.pk), f"flaky tests, from {from_at:%Y-%m-%d}"),
        summary=f"Rules of flaky tests from {from_at:%Y-%m-%d}: {len(changed)} changed",
        before={name: str(getattr(before, name)) for name in changed},
        after={name: str(getattr(rules, name)) for name in changed},
        reason=reason,
        now=now,
    )
    return version
