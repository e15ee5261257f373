"""What elements, attributes and words of JUnit XML mean: tables, because every writer has its own. Pure.

Source: docs/results.md, "JUnit XML", which prints them.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from apps.results.formats.cases import RED, Outcome

SHORT = 200  # characters of a text that is remembered
STRICT_XPASS = "[XPASS(strict)]"
UNEXPECTED_SUCCESS = "Unexpected success"
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")


class Child(NamedTuple):
    """An element within a testcase. Of several, the one of the highest rank says the outcome."""

    rank: int
    outcome: Outcome | None
    says: str


_NEUTRAL = Child(0, None, "says nothing about the outcome")
AGAIN = Child(1, Outcome.FLAKY, "an attempt that failed and was repeated: flaky, where the last one is not red")
CHILDREN = {
    "failure": Child(4, Outcome.FAILED, "failed"),
    "error": Child(3, Outcome.ERROR, "error"),
    "skipped": Child(2, Outcome.SKIPPED, "skipped"),
    "rerun": AGAIN,
    "flakyFailure": AGAIN,
    "flakyError": AGAIN,
    "rerunFailure": AGAIN,
    "rerunError": AGAIN,
    "system-out": _NEUTRAL,
    "system-err": _NEUTRAL,
    "properties": _NEUTRAL,
    "property": _NEUTRAL,
    "attachments": _NEUTRAL,
    "attachment": _NEUTRAL,
}


class Dialect(NamedTuple):
    """What an element means where a writer says more in its type, message or text. The first row that fits holds."""

    element: str
    part: str
    begins: str
    outcome: Outcome
    says: str


DIALECTS = (
    Dialect("skipped", "type", "pytest.xfail", Outcome.XFAILED, "pytest's expected failure"),
    Dialect("skipped", "type", "XFAIL", Outcome.XFAILED, "unittest-xml-reporting's expected failure"),
    Dialect("skipped", "message", "expected failure", Outcome.XFAILED, "the same without its type"),
    Dialect("skipped", "message", "xfail-marked test passes unexpectedly", Outcome.XPASSED, "an older pytest"),
    Dialect("failure", "message", STRICT_XPASS, Outcome.XPASSED, "pytest's strict xfail that passed"),
    Dialect("failure", "text", STRICT_XPASS, Outcome.XPASSED, "the same, in the text"),
    Dialect("failure", "message", UNEXPECTED_SUCCESS, Outcome.XPASSED, "unittest's expectedFailure under pytest"),
    Dialect("failure", "text", UNEXPECTED_SUCCESS, Outcome.XPASSED, "the same, in the text"),
    Dialect("failure", "type", "UnexpectedSuccess", Outcome.XPASSED, "unittest-xml-reporting"),
    Dialect("error", "type", "UnexpectedSuccess", Outcome.XPASSED, "unittest-xml-reporting"),
    Dialect("error", "message", UNEXPECTED_SUCCESS, Outcome.XPASSED, "the same without its type"),
)

# Words of a testcase's attributes `status` and `result`, where no child says the outcome.
WORDS = {
    **dict.fromkeys(("run", "completed", "passed", "pass", "success", "ok"), Outcome.PASSED),
    **dict.fromkeys(("failed", "failure", "fail"), Outcome.FAILED),
    **dict.fromkeys(("error", "errored"), Outcome.ERROR),
    **dict.fromkeys(("skipped", "skip", "notrun", "disabled", "ignored", "suppressed"), Outcome.SKIPPED),
    **dict.fromkeys(("xfail", "xfailed"), Outcome.XFAILED),
    **dict.fromkeys(("xpass", "xpassed"), Outcome.XPASSED),
    "flaky": Outcome.FLAKY,
}


def meaning(element: str, kind: str, message: str, text: str) -> Outcome:
    """The outcome of a failure, an error or a skip with this type, message and text."""
    parts = {"type": kind, "message": message.lstrip(), "text": text.lstrip()}
    for row in DIALECTS:
        if row.element == element and parts[row.part].startswith(row.begins):
            return row.outcome
    outcome = CHILDREN[element].outcome
    assert outcome is not None  # only elements that say one are asked about
    return outcome


@lru_cache(maxsize=4096)
def plain_skip(kind: str, message: str) -> tuple[Outcome, str]:
    """Outcome and message of a skip, both short. A report repeats few of them, so the texts are held once."""
    return meaning("skipped", kind, message, ""), message


def by_words(attributes: dict[str, str]) -> tuple[Outcome | None, str]:
    """What `result` and `status` say: an outcome, red before any other, and a word that nobody knows."""
    outcome, unknown = None, ""
    for name in ("result", "status"):
        said = attributes.get(name)
        if not said:
            continue
        known = WORDS.get(said.strip().lower())
        if known is None:
            unknown = unknown or said
        elif outcome in (None, Outcome.PASSED) or known in RED:
            outcome = known
    return outcome, unknown


def seconds_of(said: str, limit: int) -> float | None:
    """A time in seconds, or None where it is none: a word, nan, negative, past `limit`. Knows `1,234.5`."""
    if _THOUSANDS.fullmatch(said):
        said = said.replace(",", "")
    try:
        value = float(said)
    except ValueError:
        return None
    return value if 0 <= value <= limit else None
