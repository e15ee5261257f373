"""Bytes in, cases and notes out: what tests of readers share."""

import io
from typing import NamedTuple

from apps.results.formats import archive, junit, reportlog
from apps.results.formats.cases import Case, Notes
from apps.results.formats.limits import Limits

LIMITS = Limits()
PATH = "test-reports/python-pytest/test_ops/test_ops.xml"


class Read(NamedTuple):
    """What came of a file."""

    cases: list[Case]
    notes: dict[str, int]


def read_junit(data: str | bytes, *, path: str = PATH, limits: Limits = LIMITS) -> Read:
    notes = Notes()
    raw = data.encode() if isinstance(data, str) else data
    return Read(list(junit.read(io.BytesIO(raw), path=path, limits=limits, notes=notes)), notes.counts)


def read_log(data: str | bytes, *, limits: Limits = LIMITS) -> Read:
    notes = Notes()
    raw = data.encode() if isinstance(data, str) else data
    return Read(list(reportlog.read(io.BytesIO(raw), path="log.jsonl", limits=limits, notes=notes)), notes.counts)


# Its name, its format, the names of its cases, its notes.
File = tuple[str, str, list[str], dict[str, int]]


class Opened(NamedTuple):
    """What came of an upload: its files, and its own notes."""

    files: list[File]
    notes: dict[str, int]


def read_upload(data: bytes, *, name: str = "upload", limits: Limits = LIMITS) -> Opened:
    notes = Notes()
    files: list[File] = []
    for member in archive.members(io.BytesIO(data), name=name, limits=limits, notes=notes):
        cases = [case.name for case in member.cases()]
        files.append((member.path, member.format, cases, member.notes.counts))
    return Opened(files, notes.counts)
