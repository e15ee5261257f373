"""Policies, put in force through the real services."""

import copy
import datetime
from typing import Any

from apps.accounts.policy import Role
from apps.policies.models import PolicyDraft
from apps.policies.policy import Policy, written
from apps.policies.selectors import policy_at
from apps.policies.services import change_draft, open_draft, put_in_force
from tests.factories.listing import user


def edited(policy: Policy, *, limits: dict[str, int] | None = None, **thresholds: Any) -> dict[str, Any]:
    """A policy's values with other limits and, by a criterion's key with _ for the dots, other thresholds."""
    values = copy.deepcopy(written(policy))
    values["limits"] |= limits or {}
    for row in values["criteria"]:
        key = f"L{row['level']}_{row['use']}_{row['measure']}"
        row["threshold"] = thresholds.pop(key, row["threshold"])
    assert not thresholds, f"no such criterion: {thresholds}"
    return values


def policy_in_force(now: datetime.datetime, **changes: Any) -> Policy:
    """A policy with these changes, put in force now by a maintainer."""
    by = user(Role.MAINTAINER)
    draft = open_draft(title="Other numbers", by=by, now=now)
    values = edited(policy_at(now), **changes)
    change_draft(draft=draft, title=draft.title, values=values, expected_revision=1, now=now)
    put_in_force(
        draft=PolicyDraft.objects.get(pk=draft.pk),
        from_at=now,
        reason="the field asked for it",
        effects={},
        expected_revision=2,
        by=by,
        now=now,
    )
    return policy_at(now)
