"""Verbs on drafts of the policy: open, change, drop, put in force."""

import datetime
from typing import Any

from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.services import actor_of
from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.services import Subject, record
from apps.core import errors
from apps.core.errors import Problem
from apps.policies.models import DraftState, PolicyDraft, PolicyVersion
from apps.policies.policy import Contradiction, Policy, differences, read, written
from apps.policies.selectors import numbered, policy_at

TITLE_MAX, REASON_MAX = 200, 2_000


def open_draft(*, title: str, by: User, now: datetime.datetime) -> PolicyDraft:
    """Begin a draft with the rows that are in force. It decides nothing yet. Raises Problem `malformed`."""
    policy = policy_at(now)
    return PolicyDraft.objects.create(
        title=errors.written(title, "title", TITLE_MAX),
        base_number=policy.number,
        values=written(policy),
        author=by,
        created_at=now,
        changed_at=now,
    )


def change_draft(
    *, draft: PolicyDraft, title: str, values: Any, expected_revision: int, now: datetime.datetime
) -> None:
    """Write a draft's rows anew. Raises Problem: `malformed` (the row that contradicts), `draft_stale`."""
    title = errors.written(title, "title", TITLE_MAX)
    _read(values)
    _turn(draft, expected_revision, now, title=title, values=values)


def drop_draft(*, draft: PolicyDraft, expected_revision: int, now: datetime.datetime) -> None:
    """Give a draft up. Raises Problem `draft_stale`."""
    _turn(draft, expected_revision, now, state=DraftState.DROPPED)


@transaction.atomic
def put_in_force(
    *,
    draft: PolicyDraft,
    from_at: datetime.datetime,
    reason: str,
    effects: dict[str, Any],
    expected_revision: int,
    by: User,
    now: datetime.datetime,
) -> Event:
    """Let a draft hold from a moment on, never before now; what was decided before keeps its version.

    `effects`: what it would do to today's field, as the decider saw it; it stands in the log. Returns the decision.
    Raises Problem: `malformed` (no reason, a date that has passed or is not the latest, rows that contradict), and
    `draft_stale` (changed meanwhile, or another version was put in force since it began).
    """
    reason = errors.written(reason, "reason", REASON_MAX)
    if from_at < now:
        raise Problem("malformed", f"from_at: {from_at:%Y-%m-%d %H:%M} has passed, name a later moment.", "from_at")
    locked = PolicyDraft.objects.select_for_update().get(pk=draft.pk)
    policy = _read(locked.values)
    last = PolicyVersion.objects.order_by("-number").first()
    if last is not None and from_at <= last.from_at:
        raise Problem(
            "malformed",
            f"from_at: policy {last.number} holds from {last.from_at:%Y-%m-%d %H:%M}, name a later moment.",
            "from_at",
        )
    if locked.base_number != (last.number if last else 0):
        raise Problem(
            "draft_stale",
            f"The draft began with policy {locked.base_number}, and policy {last.number if last else 0} has been "
            "decided since: begin a draft with its rows.",
        )
    number = locked.base_number + 1
    changed = differences(numbered(locked.base_number), policy)
    if not changed:
        raise Problem("malformed", "values: the draft changes nothing, edit a row first.", "values")
    actor = actor_of(by)
    event = record(
        action=Action.POLICY_PUT_IN_FORCE,
        actor=actor,
        subject=Subject("policyversion", str(number), f"policy {number}"),
        summary=f"Policy {number} from {from_at:%Y-%m-%d}: {len(changed)} rows changed",
        before={one.row: one.before for one in changed},
        after={one.row: one.after for one in changed} | {"from_at": from_at.isoformat()},
        reason=reason,
        evidence={"draft": str(locked.public_id), "effects": effects},
        now=now,
    )
    try:
        with transaction.atomic():
            version = PolicyVersion.objects.create(
                number=number,
                values=locked.values,
                from_at=from_at,
                title=locked.title,
                reason=reason,
                by=actor.label,
                created_at=now,
                event_seq=event.seq,
            )
    except IntegrityError:
        raise Problem("draft_stale", f"Policy {number} was decided meanwhile: begin a draft with its rows.") from None
    _turn(locked, expected_revision, now, state=DraftState.IN_FORCE, version=version)
    draft.refresh_from_db()
    return event


def _read(values: Any) -> Policy:
    try:
        return read(values)
    except Contradiction as found:
        raise Problem("malformed", str(found), found.field) from None


def _turn(draft: PolicyDraft, expected_revision: int, now: datetime.datetime, **changes: Any) -> None:
    """The compare-and-set, and the same on the object in hand."""
    unchanged = PolicyDraft.objects.filter(pk=draft.pk, state=DraftState.OPEN, revision=expected_revision)
    changes |= {"revision": expected_revision + 1, "changed_at": now}
    if unchanged.update(**changes) != 1:
        raise Problem("draft_stale", "The draft was changed, dropped or put in force meanwhile: look again.")
    for name, value in changes.items():
        setattr(draft, name, value)
