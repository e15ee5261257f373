"""The form of the log as a file: JSON lines, ASCII. Pure; docs/decisions.md tells outsiders the same.

The first line says whose log it is, then comes a line for each event in order, then one that says where the log ends:
without it the file was cut short. A public export withholds the bodies of events that are no decisions: such a line
carries its place in the chain and its hash. The hash cannot be recomputed without the body, so what stands before a
withheld event hangs together with what comes after only through the lines' own digest, which every checkpoint signs.
"""

import enum
import hashlib
import json
from typing import Any

from apps.audit.chain import Link, canonical

FORMAT = "accelhub-decision-log/1"
MEDIA_TYPE = "application/jsonl"

OPENING = {"format", "hub", "upstream", "scope", "at"}
EVENT = {"seq", "body", "previous_hash", "hash"}
WITHHELD = {"seq", "withheld", "previous_hash", "hash"}
ENDING = {"end", "count", "withheld", "hash", "digest"}


class Scope(enum.StrEnum):
    """Whose export it is."""

    PUBLIC = "public"  # decisions only; of other events no bodies
    FULL = "full"  # the operator's own: every body


class Digest:
    """SHA-256 over lines, each with its line end."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, line: str) -> str:
        """Take a line in, and give it back."""
        self._sha.update(f"{line}\n".encode())
        return line

    @property
    def hex(self) -> str:
        return self._sha.hexdigest()


def opening_line(*, hub: str, upstream: str, scope: Scope, at: str) -> str:
    return canonical({"format": FORMAT, "hub": hub, "upstream": upstream, "scope": str(scope), "at": at})


def event_line(link: Link) -> str:
    """An event with its body, or withheld where its body is None."""
    told: dict[str, Any] = {"seq": link.seq, "previous_hash": link.previous_hash, "hash": link.hash}
    return canonical(told | ({"withheld": True} if link.body is None else {"body": link.body}))


def ending_line(*, seq: int, hash_: str, count: int, withheld: int, digest: str) -> str:
    """`seq` and `hash_` are the head's, `count` is how many events stand in the file, `digest` is over all lines."""
    return canonical({"end": seq, "hash": hash_, "count": count, "withheld": withheld, "digest": digest})


def without_body(link: Link) -> Link:
    return Link(link.seq, None, link.previous_hash, link.hash)


def as_public(link: Link) -> Link:
    """The event as the public export has it: the body of a decision, of another none.

    Raises ValueError, KeyError or TypeError for a body that cannot be read.
    """
    if link.body is None or json.loads(link.body)["is_decision"] is True:
        return link
    return without_body(link)
