"""What a report says about one test, and what was odd about the file that said it. Pure: no database.

Source: docs/results.md. Everything in a report is hostile text; what a reader hands on can be stored as it is.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from apps.core.text import HIDDEN_IN_TEXT

DETAIL_MAX = 200


class Outcome(IntEnum):
    """How a test ended. The numbers stand in stored files: add, never renumber."""

    PASSED = 0
    FAILED = 1
    ERROR = 2
    SKIPPED = 3
    XFAILED = 4
    XPASSED = 5
    FLAKY = 6
    LOST = 7  # known to have been started or to have failed; how it ended nobody says
    UNKNOWN = 8  # a word that nobody knows: kept in Case.word, never green

    @property
    def label(self) -> str:
        """The word that people and the API read."""
        return self.name.lower()


# Something is wrong with a test that ended so, until a later attempt passes.
RED = frozenset({Outcome.FAILED, Outcome.ERROR, Outcome.LOST, Outcome.XPASSED})


class Case(NamedTuple):
    """One test as it stands in one file. Texts are as written, with what cannot be stored replaced.

    `seconds` is None where nobody said, or where what was said is absurd. `reruns` counts the attempts before the last.
    """

    file: str
    class_name: str
    name: str
    outcome: Outcome
    seconds: float | None = None
    message: str = ""
    trace: str = ""
    reruns: int = 0
    word: str = ""


class Evidence(NamedTuple):
    """How often a test that was run many times over was red and green."""

    is_flaky: bool
    red: int
    green: int


def evidence_of(message: str) -> Evidence | None:
    """The numbers in a skip's message, where upstream's reruns of disabled tests wrote them there as JSON."""
    if not message.startswith("{") or '"num_red"' not in message:
        return None
    try:
        said: Any = json.loads(message)
        red, green = said["num_red"], said["num_green"]
    except (ValueError, KeyError, RecursionError):
        return None
    if not (type(red) is type(green) is int and red >= 0 and green >= 0):
        return None
    return Evidence(said.get("flaky") is True, red, green)


class NoteKind(NamedTuple):
    """What a note's code means. `is_incomplete`: the file does not say everything, so it must not count as green."""

    says: str
    is_incomplete: bool = False


NOTES: dict[str, NoteKind] = {
    # What the reports are like.
    "truncated": NoteKind("The file ends too early: what was complete is read.", True),
    "damaged": NoteKind("The file is damaged: it is read up to there.", True),
    "dropped": NoteKind("A case was cut off before its end: it is left out.", True),
    "bad_line": NoteKind("A line cannot be read: it is left out.", True),
    "long_line": NoteKind("A line is longer than a line may be: it is left out.", True),
    "long_token": NoteKind("A tag is longer than a tag may be: the file is read up to there.", True),
    "too_deep": NoteKind("Elements stand too deep within one another: the file is read up to there.", True),
    "too_many_cases": NoteKind("The file has more cases than a file may have: the rest is left out.", True),
    "too_many_in_report": NoteKind("The report has more cases than a report may have: the rest is left out.", True),
    "no_end": NoteKind("The log does not say that the run ended: the process may have died.", True),
    "lost": NoteKind("Failures were counted, or tests started, of which no result was written: they are lost.", True),
    "not_a_report": NoteKind("The file is neither JUnit XML nor a pytest report log: it is left out."),
    "no_suite": NoteKind("The file is XML without a test suite: nothing in it is a result."),
    "header": NoteKind("A suite's header says other numbers than were counted: the counted ones hold."),
    "characters": NoteKind("Characters or bytes that cannot be stored were replaced."),
    "encoding": NoteKind("The file is not in the encoding that it declares: it was read as what it looks like."),
    "entities": NoteKind("Entities are declared or used: none was expanded."),
    "nested_case": NoteKind("A case stands within another: they were read as two."),
    "unnamed": NoteKind("A case has no name: it is named for its suite."),
    "suite_error": NoteKind("An error stands under a suite and no case: it is a case named for the suite."),
    "unknown_word": NoteKind("An outcome's word is not known: the case is kept as unknown."),
    "unknown_line": NoteKind("A line is of a kind that is not known: it is left out."),
    "time": NoteKind("A time is no number of seconds, negative or absurd: it counts as unknown."),
    "cut": NoteKind("A message or trace was longer than is kept: it was cut."),
    "flaky_evidence": NoteKind("A skip's message says that the test was red and green when it was run again."),
    # What the archives are like.
    "too_large": NoteKind("The file is larger than a file may be: the rest is left out.", True),
    "expanded": NoteKind("The upload expands to more than it may: the rest is left out.", True),
    "ratio": NoteKind("The file expands more than a report does: the rest is left out.", True),
    "too_many_files": NoteKind("The upload has more files than it may: the rest is left out.", True),
    "archive_damaged": NoteKind("The archive is damaged: it is read up to there.", True),
    "encrypted": NoteKind("The file is encrypted: it is left out. Send it without a password.", True),
    "method": NoteKind(
        "The file is compressed in a way that is not read: send zip (deflate), tar, tar.gz or gz.", True
    ),
    "nested": NoteKind("The file is an archive within an archive: it is not opened. Send its files themselves.", True),
    "link": NoteKind("The entry is a link, device or pipe: it is left out."),
    "path": NoteKind(
        "The file's name is absolute, leads out of the archive, is too long or hides something: it was cleaned."
    ),
    "same_path": NoteKind("Several files have this name: each is read."),
}


@dataclass(slots=True)
class Notes:
    """What was odd about one file: how often, and the first of each kind in words.

    `started` is when the file says that it began, as written; it puts reports of repeated processes in order.
    """

    counts: dict[str, int] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    started: str = ""

    def add(self, code: str, detail: str = "", count: int = 1) -> None:
        """Note something. Only the first detail of a code is kept."""
        if code not in self.counts:
            self.counts[code] = 0
            self.details[code] = HIDDEN_IN_TEXT.sub("\ufffd", detail[:DETAIL_MAX])
        self.counts[code] += count

    @property
    def is_incomplete(self) -> bool:
        """Whether something is missing, so that the file must not count as green."""
        return any(NOTES[code].is_incomplete for code in self.counts)

    def sentences(self) -> Iterator[tuple[str, int, str]]:
        """Code, how often, and what to tell people."""
        for code, count in self.counts.items():
            yield code, count, f"{NOTES[code].says} {self.details[code]}".strip()
