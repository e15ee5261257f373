"""Upstream's file of disabled tests, pure: how it is read, when it is not taken, and what its platforms are here.

Form: `{"test (__main__.Class)": ["<issue>", "<address>", ["<platform>", …]]}`; upstream reads an empty list of
platforms as all of its own. Source: docs/quarantine.md, "Upstream's own list".
"""

import datetime
import json
import re
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from apps.platforms.sync_policy import SHRINK_FREE, SHRINK_SHARE, is_page, is_shrink
from apps.quarantine.enums import ListAlarm
from apps.quarantine.policy import PLACEHOLDERS
from apps.results.names.canonical import Canonicals, digest_of
from apps.results.names.rules import IN_TREE

# A whole list has a few thousand lines.
ENTRIES_MAX = 50_000
BYTES_MAX = 16_000_000
# An address that has not answered for so long is an alarm: until then the next round asks again.
SILENT_AFTER = datetime.timedelta(hours=3)
SAID_MAX = 500
WORD_MAX = 50
WORDS_MAX = 20
URL_MAX = 300
ISSUE_MAX = 20

# The words for which upstream's runner has a condition: machines, builds and ways to run, none of them a device outside
# PyTorch's tree.
WORDS: dict[str, str] = {
    "asan": "builds with the address sanitizer",
    "dynamo": "tests under Dynamo",
    "dynamo_wrapped": "tests wrapped by Dynamo",
    "inductor": "tests under Inductor",
    "linux": "machines with Linux",
    "mac": "machines with macOS",
    "macos": "machines with macOS",
    "rocm": "builds for ROCm",
    "slow": "runs of the slow tests",
    "win": "machines with Windows",
    "windows": "machines with Windows",
    "xpu": "builds for XPU",
}

GUARDS: dict[ListAlarm, str] = {
    ListAlarm.HTML: "It is a web page.",
    ListAlarm.EMPTY: "It is empty, or names no test while the copy in use names some.",
    ListAlarm.UNREADABLE: f"It is no JSON object of tests, or has more than {ENTRIES_MAX:,} lines.",
    ListAlarm.SHRINK: f"More than {SHRINK_SHARE * 100:.0f} % of the tests are gone at once, "
    f"and more than {SHRINK_FREE}.",
    ListAlarm.REFUSED: f"Its address answers with a refusal, a redirect, or more than {BYTES_MAX // 1_000_000} MB.",
    ListAlarm.SILENT: f"Its address has not answered for {SILENT_AFTER.seconds // 3_600} hours.",
}

_NAME = re.compile(r"(\S+) \(([^\s()]+)\)")


@dataclass(frozen=True)
class Refusal:
    """Why a list is not taken: the guard, and what was seen."""

    kind: ListAlarm
    detail: str


@dataclass(frozen=True)
class Line:
    """A test that upstream has disabled. `words`: its platforms, in small letters; none: all of upstream's own."""

    said: str
    issue: str
    url: str
    words: tuple[str, ...]

    @property
    def identities(self) -> tuple[str, list[uuid.UUID]]:
        """Its file, '' where the list does not say it, and what its class and name come to: as they stand, and without
        a device of PyTorch's own tree."""
        name, suite = _split(self.said)
        file = ""
        found: dict[uuid.UUID, None] = {}
        for words in (frozenset[str](), IN_TREE):
            canonical = Canonicals(words).of("", suite, name)
            file = canonical.file
            found[identity(canonical.class_name, canonical.name)] = None
        return file, list(found)


def identity(class_name: str, name: str) -> uuid.UUID:
    """A test's class and name as one number: of any length, and without its file, which upstream's list leaves out."""
    return uuid.UUID(bytes=digest_of("", class_name, name))


def _split(said: str) -> tuple[str, str]:
    found = _NAME.fullmatch(said)
    assert found is not None, "only what fits is a line"
    return found[1], found[2]


@dataclass(frozen=True)
class DisabledList:
    """What a file says. `left_out`: how many of its lines are of another form."""

    lines: tuple[Line, ...]
    left_out: int


def judge(content: bytes, before: Collection[str], *, is_accepted: bool = False) -> DisabledList | Refusal:
    """The list that a file is, or why it is not taken in place of one that names `before`.

    `is_accepted`: somebody says that what is gone is meant to be.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        return Refusal(ListAlarm.UNREADABLE, f"byte {error.start} is not UTF-8")
    if not text.strip():
        return Refusal(ListAlarm.EMPTY, "it has no content")
    if is_page(text):
        return Refusal(ListAlarm.HTML, f"it begins with {text.strip()[:40]!r}")
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Refusal(ListAlarm.UNREADABLE, f"it is no JSON: {str(error)[:200]}")
    if not isinstance(said, dict):
        return Refusal(ListAlarm.UNREADABLE, f"it is a {type(said).__name__}, not an object of tests")
    if len(said) > ENTRIES_MAX:
        return Refusal(ListAlarm.UNREADABLE, f"it has {len(said):,} lines")
    lines = tuple(line for key, value in said.items() if (line := _line(key, value)))
    if said and not lines:
        return Refusal(ListAlarm.UNREADABLE, f"none of its {len(said):,} lines is a test with issue and platforms")
    if before and not lines:
        return Refusal(ListAlarm.EMPTY, f"it names no test, {len(before):,} are disabled")
    gone = sorted(set(before) - {line.said for line in lines})
    if not is_accepted and is_shrink(len(gone), len(before)):
        return Refusal(ListAlarm.SHRINK, f"{len(gone):,} of {len(before):,} are gone: {', '.join(gone[:5])}"[:500])
    return DisabledList(lines, len(said) - len(lines))


def _line(key: str, value: Any) -> Line | None:
    """One line; None where it is of another form, or nothing that can be kept."""
    if len(key) > SAID_MAX or not key.isprintable() or not _NAME.fullmatch(key):
        return None
    if not isinstance(value, list) or len(value) < 3 or not isinstance(value[2], list) or len(value[2]) > WORDS_MAX:
        return None
    words = [word.strip().lower() if isinstance(word, str) and word.isprintable() else None for word in value[2]]
    if any(word is None or len(word) > WORD_MAX for word in words):
        return None
    issue, url = str(value[0]), str(value[1])
    is_link = len(url) <= URL_MAX and url.isprintable() and _is_https(url)
    return Line(
        said=key,
        issue=issue if issue.isascii() and issue.isdigit() and len(issue) <= ISSUE_MAX else "",
        url=url if is_link else "",
        words=tuple(dict.fromkeys(word for word in words if word is not None)),
    )


def _is_https(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.netloc)


# --- its platforms ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reach:
    """What a line's platforms are here. `here`: slugs of in-tree platforms; `elsewhere`: words of upstream's for which
    there is no platform here; `unknown`: words that nobody knows. With one of those the line is without effect."""

    is_all: bool
    here: tuple[str, ...]
    elsewhere: tuple[str, ...]
    unknown: tuple[str, ...]


def reach(words: Iterable[str], in_tree: Collection[str], named: Mapping[str, str | None]) -> Reach:
    """What a line's platforms come to. `in_tree`: slugs of the in-tree platforms; `named`: what maintainers said a word
    is, None for no platform here.

    A platform outside PyTorch's tree is never meant: not by "all", and not by a word that happens to be its own.
    """
    said = list(words)
    here, elsewhere, unknown = [], [], []
    for word in said:
        slug = named.get(word) or (word if word in in_tree else None)
        if slug is not None and slug in in_tree:
            here.append(slug)
        elif word in named or word in WORDS:
            elsewhere.append(word)
        else:
            unknown.append(word)
    if not said:
        here = list(in_tree)
    if unknown:
        here = []
    return Reach(not said, tuple(sorted(set(here))), tuple(elsewhere), tuple(unknown))


def is_askable(word: str) -> bool:
    """Whether anybody can say what a word means: a placeholder names nothing, and never all."""
    return word not in PLACEHOLDERS
