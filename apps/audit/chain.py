"""The hash format of the log, pure. It is fixed: changing a byte of it would break every chain ever written.

Body: JSON object, keys sorted, no spaces, ASCII only (other characters as \\uXXXX), integers only (no floats).
Link: hash = hex(SHA-256(previous_hash + "\\n" + body)); the first event's previous_hash is 64 zeros.
A part that must stay private never stands in a body: a later format field carries a salted digest in its place.
(docs/adr/0003)
"""

import datetime
import functools
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

FORMAT = 1
GENESIS = "0" * 64


@dataclass(frozen=True)
class Link:
    """One event as the chain sees it. `columns` are the stored values that must repeat what the body says; None: the
    event comes from an export, which has none. `body` is None where an export withholds it: then its hash is taken as
    it stands, and only its place in the chain is proved.
    """

    seq: int
    body: str | None
    previous_hash: str
    hash: str
    columns: dict[str, Any] | None = None


@dataclass(frozen=True)
class Proof:
    """`verified_to`: the last event whose link holds. `finding`: empty, or what is wrong with the first broken one."""

    verified_to: int
    head_hash: str
    finding: str = ""

    @property
    def is_sound(self) -> bool:
        return not self.finding


def canonical(value: dict[str, Any]) -> str:
    """The one text of a body. Raises TypeError for a float anywhere: its text would depend on who writes it."""
    _refuse_floats(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def link_hash(previous_hash: str, body: str) -> str:
    """SHA-256 over the link, lower-case hex."""
    return hashlib.sha256(f"{previous_hash}\n{body}".encode()).hexdigest()


def stamp(moment: datetime.datetime) -> str:
    """A time as bodies spell it: UTC, microseconds, `Z`."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# The filter columns of an event, and where its body says the same.
COLUMNS: dict[str, tuple[str, ...]] = {
    "at": ("at",),
    "action": ("action",),
    "actor_kind": ("actor", "kind"),
    "actor_id": ("actor", "id"),
    "actor_label": ("actor", "label"),
    "subject_kind": ("subject", "kind"),
    "subject_id": ("subject", "id"),
    "subject_label": ("subject", "label"),
    "is_decision": ("is_decision",),
}


def columns_of(body: dict[str, Any]) -> dict[str, Any]:
    """What the filter columns must say for this body. Raises KeyError or TypeError for a body of another shape."""
    return {name: functools.reduce(lambda value, key: value[key], path, body) for name, path in COLUMNS.items()}


def prove(links: Iterable[Link], *, head_seq: int, head_hash: str) -> Proof:
    """Walk the chain from its first event to the head; stop at the first link that does not hold."""
    seq, hash_ = 0, GENESIS
    for link in links:
        if finding := fault_of(link, seq + 1, hash_):
            return Proof(seq, hash_, finding)
        seq, hash_ = link.seq, link.hash
    return Proof(seq, hash_, fault_of_end(seq, hash_, head_seq=head_seq, head_hash=head_hash))


def fault_of(link: Link, expected_seq: int, expected_previous: str) -> str:
    """What is wrong with an event that must follow the one of this hash; empty where it holds."""
    if link.seq != expected_seq:
        return f"event {expected_seq} is missing: the next one stored is {link.seq}"
    if link.previous_hash != expected_previous:
        return f"event {link.seq} does not follow event {link.seq - 1}: its previous_hash is another"
    if link.body is None:
        return ""
    if link.hash != link_hash(link.previous_hash, link.body):
        return f"event {link.seq} was changed: its hash does not fit its body"
    return _fault_of_body(link, link.body)


def fault_of_end(seq: int, hash_: str, *, head_seq: int, head_hash: str) -> str:
    """What is wrong with a log that ends at this event, by what its head says; empty where they agree."""
    if seq != head_seq:
        fault = "events were cut off its end" if seq < head_seq else "its head was moved"
        return f"the log ends at event {seq}, its head says {head_seq}: {fault}"
    if hash_ != head_hash:
        return f"event {seq} is not the one that the head names: its hash is another"
    return ""


def _fault_of_body(link: Link, text: str) -> str:
    try:
        body = json.loads(text)
        told, said = columns_of(body), body["seq"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"event {link.seq} has an unreadable body"
    if said != link.seq:
        return f"event {link.seq} carries the body of event {said}"
    differing = [name for name, value in told.items() if link.columns is not None and link.columns[name] != value]
    return f"event {link.seq} was changed: column {differing[0]} does not repeat its body" if differing else ""


def _refuse_floats(value: Any) -> None:
    if isinstance(value, float):
        raise TypeError(f"a log body holds no floats, saw {value!r}: write an integer in a smaller unit, or text")
    if isinstance(value, dict):
        for inner in value.values():
            _refuse_floats(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _refuse_floats(inner)
