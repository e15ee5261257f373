"""Proving an export against checkpoints that somebody kept: no database, no hub, one line in memory. Pure.

What it stands on: an event's hash covers its body and the hash before (chain.py); a checkpoint signs the hash of its
event and the digest of every line of the public export up to it; the last line of an export tells that it is whole.
"""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any

from apps.audit import chain, export
from apps.audit.chain import GENESIS, Link, canonical
from apps.audit.checkpoints import Signed
from apps.audit.export import Digest, Scope


@dataclasses.dataclass(frozen=True)
class Examination:
    """What an export proves. `verified_to`: the last event that holds; `proved_to`: the last one that a checkpoint
    proves to be what it was; `finding`: empty, or what is wrong first."""

    hub: str
    verified_to: int
    head_hash: str
    withheld: int
    proved_to: int
    finding: str = ""


class _Broken(Exception):
    """What is wrong, in a sentence without its full stop."""


def examine(lines: Iterable[bytes], checkpoints: Sequence[Signed] = ()) -> Examination:
    """Walk an export from its first line to its last and name the first thing that does not hold.

    `checkpoints` have proved signatures (checkpoints.read_file).
    """
    walk = _Walk(checkpoints)
    finding = ""
    try:
        for number, line in enumerate(lines, start=1):
            walk.take(number, line)
        walk.finish()
    except _Broken as broken:
        finding = str(broken)
    return Examination(walk.hub, walk.seq, walk.hash, walk.withheld, walk.proved_to, finding)


class _Walk:
    """Where the walk stands: after event `seq`, whose hash is `hash`."""

    def __init__(self, checkpoints: Sequence[Signed]) -> None:
        self._waiting = sorted(checkpoints, key=lambda each: (each.seq, each.number))
        self._lines, self._public_lines = Digest(), Digest()
        self._opening: dict[str, Any] = {}
        self._is_over = False
        self.seq, self.hash = 0, GENESIS
        self.withheld = self.proved_to = 0

    @property
    def hub(self) -> str:
        return str(self._opening.get("hub", ""))

    def take(self, number: int, raw: bytes) -> None:
        """One line of the file, from 1. Raises _Broken."""
        if not raw.endswith(b"\n"):
            raise _Broken(f"line {number} stops in its middle: the export was cut short after event {self.seq}")
        row, text = _read(raw, number, self.seq + 1)
        if self._is_over:
            raise _Broken(f"line {number} stands after the last line of the log")
        if number == 1:
            self._open(row)
        elif row.keys() == export.ENDING:
            return self._end(row)
        else:
            self._event(row, number)
        self._lines.add(text)
        return None

    def finish(self) -> None:
        """The file is read. Raises _Broken."""
        if not self._is_over:
            raise _Broken(f"the export was cut short after event {self.seq}: its last line is missing")
        for each in self._waiting:
            self._refuse_other_hub(each)
            if self._opening["at"] < each.at:
                raise _Broken(
                    f"the export was made before checkpoint {each.number}, which names event {each.seq}: "
                    "fetch a newer export"
                )
            raise _Broken(
                f"the log ends at event {self.seq}, and checkpoint {each.number} names event {each.seq}: "
                "events were cut off its end"
            )

    def _open(self, row: dict[str, Any]) -> None:
        is_known = row.keys() == export.OPENING and row["format"] == export.FORMAT
        if not is_known or not all(isinstance(value, str) for value in row.values()) or row["scope"] not in set(Scope):
            raise _Broken(f"line 1 does not open an export of the format {export.FORMAT}")
        self._opening = row

    def _event(self, row: dict[str, Any], number: int) -> None:
        link = _link(row)
        if link is None or (link.body is None and self._opening["scope"] == Scope.FULL):
            raise _Broken(f"line {number}, where event {self.seq + 1} belongs, is no event")
        if fault := chain.fault_of(link, self.seq + 1, self.hash):
            raise _Broken(fault)
        public = export.as_public(link)  # its body was read above
        if public.body is None and link.body is not None and self._opening["scope"] == Scope.PUBLIC:
            raise _Broken(f"event {link.seq} is no decision, and a public export withholds its body")
        self._public_lines.add(export.event_line(public))
        self.seq, self.hash = link.seq, link.hash
        self.withheld += link.body is None
        while self._waiting and self._waiting[0].seq == self.seq:
            self._hold_against(self._waiting.pop(0))

    def _hold_against(self, checkpoint: Signed) -> None:
        since = f"after event {self.proved_to}, " if self.proved_to else ""
        if checkpoint.hash != self.hash:
            self._refuse_other_hub(checkpoint)
            raise _Broken(
                f"event {self.seq} is not the one that checkpoint {checkpoint.number} names: {since}it or one before "
                "it was rewritten"
            )
        if checkpoint.export_digest != self._public_lines.hex:
            raise _Broken(
                f"the events up to {self.seq} are not those of checkpoint {checkpoint.number}: {since}one was "
                "rewritten or is withheld, although the links around it hold"
            )
        self.proved_to = self.seq

    def _refuse_other_hub(self, checkpoint: Signed) -> None:
        # Said only where something does not fit: a hub that moved to another address is still the same.
        if (checkpoint.hub, checkpoint.upstream) != (self.hub, self._opening["upstream"]):
            raise _Broken(
                f"checkpoint {checkpoint.number} is of another hub: {checkpoint.hub}, the export of {self.hub}"
            )

    def _end(self, row: dict[str, Any]) -> None:
        if type(row["end"]) is not int or not isinstance(row["hash"], str):
            raise _Broken("the last line does not say where the log ends")
        if fault := chain.fault_of_end(self.seq, self.hash, head_seq=row["end"], head_hash=row["hash"]):
            raise _Broken(fault)
        if (row["count"], row["withheld"]) != (self.seq, self.withheld):
            raise _Broken(
                f"the last line counts {row['count']} events, {row['withheld']} of them withheld; there are {self.seq} "
                f"and {self.withheld}"
            )
        if row["digest"] != self._lines.hex:
            raise _Broken(
                "a line was changed although every link holds: the first, or one whose event is withheld now; the last "
                "line was written over others"
            )
        self._is_over = True


def _read(raw: bytes, number: int, expected: int) -> tuple[dict[str, Any], str]:
    try:
        text = raw[:-1].decode("ascii")
        row = json.loads(text)
        is_ours = isinstance(row, dict) and canonical(row) == text
    except (ValueError, TypeError, RecursionError):
        raise _Broken(f"line {number}, where event {expected} belongs, cannot be read") from None
    if not is_ours:
        raise _Broken(f"line {number}, where event {expected} belongs, is not written as the hub writes it")
    return row, text


def _link(row: dict[str, Any]) -> Link | None:
    """The event of a line; None where it is none."""
    if row.keys() == export.WITHHELD and row["withheld"] is True:
        body = None
    elif row.keys() == export.EVENT and isinstance(row["body"], str):
        body = row["body"]
    else:
        return None
    if type(row["seq"]) is not int or not isinstance(row["previous_hash"], str) or not isinstance(row["hash"], str):
        return None
    return Link(row["seq"], body, row["previous_hash"], row["hash"])
