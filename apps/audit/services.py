"""Writing the log and proving it."""

import datetime
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from apps.audit import chain, selectors
from apps.audit.enums import Action, ActorKind
from apps.audit.models import Event, Head, LastVerification


@dataclass(frozen=True)
class Actor:
    """Who did it, as it was at that moment: no foreign key, so that the log outlives accounts."""

    kind: ActorKind
    id: str
    label: str


HUB = Actor(ActorKind.HUB, "hub", "AccelHub")


def command_actor(command: str) -> Actor:
    """The operator at the hub's command line, who has no account there."""
    return Actor(ActorKind.COMMAND, command, f"operator, by manage.py {command}")


@dataclass(frozen=True)
class Subject:
    """What it was done to. `kind` is the model's name in lower case, `id` its public id."""

    kind: str
    id: str
    label: str


def record(
    *,
    action: Action,
    actor: Actor,
    subject: Subject,
    summary: str,
    now: datetime.datetime,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    reason: str = "",
    evidence: dict[str, Any] | None = None,
    is_decision: bool = True,
) -> Event:
    """Append one event inside the caller's transaction.

    Call it last there: it takes the head's lock, and every other append waits until this transaction ends.
    `summary` is a plain sentence; `evidence` is JSON without floats; `is_decision` puts it among the public decisions.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("audit.record needs the transaction of the change that it records")
    head = Head.objects.select_for_update().get(pk=1)
    body = chain.canonical(
        {
            "format": chain.FORMAT,
            "seq": head.seq + 1,
            "at": chain.stamp(now),
            "action": str(action),
            "actor": {"kind": str(actor.kind), "id": actor.id, "label": actor.label},
            "subject": {"kind": subject.kind, "id": subject.id, "label": subject.label},
            "summary": summary,
            "before": before or {},
            "after": after or {},
            "reason": reason,
            "evidence": evidence or {},
            "is_decision": is_decision,
        }
    )
    return Event.objects.create(
        seq=head.seq + 1,
        at=now,
        action=action,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_label=actor.label,
        subject_kind=subject.kind,
        subject_id=subject.id,
        subject_label=subject.label,
        is_decision=is_decision,
        body=body,
        previous_hash=head.hash,
        hash=chain.link_hash(head.hash, body),
    )


def verify(*, now: datetime.datetime) -> chain.Proof:
    """Prove the whole chain as it stands and remember the outcome for the page."""
    with selectors.snapshot():
        head = selectors.head()
        proof = chain.prove(selectors.links(), head_seq=head.seq, head_hash=head.hash)
    LastVerification.objects.update_or_create(
        pk=1, defaults={"checked_at": now, "verified_to": proof.verified_to, "finding": proof.finding}
    )
    return proof
