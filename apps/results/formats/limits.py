"""How much of an upload is read: one table. Past a limit the rest is left out, and a note says so.

Source: docs/results.md, "Limits". Sizes are bytes unless a row says otherwise.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class Row(NamedTuple):
    """A limit as people read it."""

    name: str
    value: int
    unit: str
    says: str


def _row(default: int, unit: str, says: str) -> Any:
    return field(default=default, metadata={"unit": unit, "says": says})


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one upload (`report`: of all uploads of a report), each with its unit and what happens past it."""

    compressed: int = _row(512 * MIB, "bytes", "an upload as it is sent; a larger one is refused")
    expanded: int = _row(4 * GIB, "bytes", "all files of an upload, expanded; the rest is left out")
    member: int = _row(1 * GIB, "bytes", "one file, expanded; the rest of it is left out")
    ratio: int = _row(
        400, "times", "one file against its compressed size, above `ratio_floor`; the rest of it is left out"
    )
    ratio_floor: int = _row(32 * MIB, "bytes", "a file that expands to less is not asked for its ratio")
    files: int = _row(20_000, "files", "in one upload; the rest is left out")
    directory: int = _row(8 * MIB, "bytes", "a zip's list of files; a longer one is refused")
    path: int = _row(1_000, "characters", "the name of a file; the rest is cut")
    cases: int = _row(3_000_000, "cases", "in one file; the rest is left out")
    report: int = _row(3_000_000, "cases", "of one report, all files of its shards together; the rest is left out")
    running: int = _row(10_000, "cases", "of a report log that run at once; the rest is left out")
    depth: int = _row(100, "levels", "elements within one another; the file is read up to there")
    token: int = _row(16 * MIB, "bytes", "one tag with its attributes, so also one name; the file is read up to there")
    line: int = _row(64 * MIB, "bytes", "one line of a log; a longer one is left out")
    message: int = _row(4_000, "characters", "the message of a case; the rest is cut")
    trace: int = _row(16_000, "characters", "the trace of a case; the middle is cut")
    seconds: int = _row(2_000_000, "seconds", "the time of a case; a longer one is taken for unknown")


def rows(limits: Limits) -> Iterator[Row]:
    """The limits in the order in which they are printed."""
    for one in fields(limits):
        yield Row(one.name, getattr(limits, one.name), one.metadata["unit"], one.metadata["says"])
