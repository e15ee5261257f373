"""Writing the log and proving it."""

import dataclasses
import datetime
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from apps.audit import chain, checkpoints, selectors
from apps.audit.chain import Proof
from apps.audit.checkpoints import CheckpointError, Signed
from apps.audit.enums import Action, ActorKind
from apps.audit.models import Checkpoint, Event, Head, LastVerification


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
    head = _locked_head()
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


def _locked_head() -> Head:
    # By a function that runs as the tables' owner: the hub's own role may not lock or change the head (migration 0007).
    return Head.objects.raw("SELECT * FROM audit_lock_head()")[0]


def verify(*, now: datetime.datetime) -> Proof:
    """Prove the whole chain as it stands, then the checkpoints against it, and remember the outcome for the page."""
    with selectors.snapshot():
        head = selectors.head()
        proof = chain.prove(selectors.links(), head_seq=head.seq, head_hash=head.hash)
        if proof.is_sound:
            proof = _prove_checkpoints(proof)
    LastVerification.objects.update_or_create(
        pk=1, defaults={"checked_at": now, "verified_to": proof.verified_to, "finding": proof.finding}
    )
    return proof


def _prove_checkpoints(proof: Proof) -> Proof:
    """A chain that holds in itself, held against what was signed of it: a log that was written anew holds too."""
    rows = list(Checkpoint.objects.order_by("number"))
    hashes = dict(Event.objects.filter(seq__in=[row.seq for row in rows]).values_list("seq", "hash"))
    proved, read = Proof(0, chain.GENESIS), []
    for number, row in enumerate(rows, start=1):
        if row.number != number:
            return dataclasses.replace(proved, finding=f"checkpoint {number} is missing: the next one is {row.number}")
        try:
            signed = checkpoints.read(row.text, row.signature)
        except CheckpointError as error:
            return dataclasses.replace(proved, finding=f"checkpoint {row.number} {error}")
        read.append(signed)
        if fault := _fault_of_row(row, signed) or checkpoints.fault_of_series(read[-2:]):
            return dataclasses.replace(proved, finding=fault)
        if hashes.get(row.seq) != row.hash:
            return dataclasses.replace(
                proved,
                finding=f"checkpoint {row.number} names event {row.seq} with another hash: it or one before it was "
                "rewritten, or cut off",
            )
        proved = Proof(row.seq, row.hash)
    return proof


def _fault_of_row(row: Checkpoint, signed: Signed) -> str:
    told = (signed.number, signed.seq, signed.hash, signed.previous, signed.public_key, signed.at)
    if told != (row.number, row.seq, row.hash, row.previous, row.public_key, chain.stamp(row.at)):
        return f"checkpoint {row.number} was changed: a column does not repeat its text"
    return ""
