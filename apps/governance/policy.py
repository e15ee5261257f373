"""The rules of proposals: what a level asks for, what can be done in which state, what a proposal may say.

Tables and pure functions; /policy/ and /register/ print the tables.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from apps.core.text import HIDDEN_IN_LINE, HIDDEN_IN_TEXT, URL, hidden_finding
from apps.governance.enums import Party, State, Verb
from apps.platforms.allowlist import DEVICE, FULL_NAME, LOGIN
from apps.platforms.policy import EVENTS, ONBOARDING

# What a proposal asks for. Higher levels have their own ways.
PROPOSED_LEVEL = ONBOARDING


# --- what a level asks for --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Criterion:
    """One thing that a level asks for. `shown_by`: what proves it. `how`: how a vendor shows it."""

    key: str
    level: int
    text: str
    shown_by: str
    how: str


CRITERIA: tuple[Criterion, ...] = (
    Criterion(
        "app_installed",
        ONBOARDING,
        "The hub's GitHub App is installed on the repository.",
        "evidence",
        "Install it before you propose. Once listed, the repository's page says whether GitHub confirms it.",
    ),
    Criterion(
        "hardware",
        ONBOARDING,
        "There is verifiable information about the hardware.",
        "evidence",
        "At least one item of evidence: what the hardware is, where CI runs on it, how others can check that.",
    ),
    Criterion(
        "public_repository",
        ONBOARDING,
        "The downstream repository is public.",
        "evidence",
        "Its address on GitHub opens for anyone; a maintainer looks.",
    ),
)


def criteria_of(level: int) -> list[Criterion]:
    """What one level asks for."""
    return [criterion for criterion in CRITERIA if criterion.level == level]


# --- states -----------------------------------------------------------------------------------------------------

OPEN = (State.WAITING, State.RETURNED)

NEXT_ACTOR: dict[State, Party] = {
    State.WAITING: Party.MAINTAINERS,
    State.RETURNED: Party.VENDOR,
    State.ACCEPTED: Party.NOBODY,
    State.WITHDRAWN: Party.NOBODY,
}


@dataclass(frozen=True)
class Move:
    """One thing that can be done. `words`: what has to be said with it. `tells`: who gets an e-mail."""

    to: State
    by: Party
    words: str
    tells: Party
    is_wordless: bool = False


# (state, verb) → what it does; what is not here cannot be done. None is before the beginning.
MOVES: dict[tuple[State | None, Verb], Move] = {
    (None, Verb.SUBMIT): Move(State.WAITING, Party.VENDOR, "none", Party.MAINTAINERS, is_wordless=True),
    (State.WAITING, Verb.RETURN): Move(State.RETURNED, Party.MAINTAINERS, "what is missing", Party.VENDOR),
    (State.WAITING, Verb.ACCEPT): Move(State.ACCEPTED, Party.MAINTAINERS, "the reason, public", Party.VENDOR),
    (State.WAITING, Verb.WITHDRAW): Move(State.WITHDRAWN, Party.VENDOR, "optional", Party.NOBODY, is_wordless=True),
    # Where upstream's file is the authority: the pull request that would have listed it was closed, or never opened.
    (State.ACCEPTED, Verb.PUT_BACK): Move(
        State.WAITING, Party.UPSTREAM, "how its pull request ended", Party.MAINTAINERS
    ),
    (State.RETURNED, Verb.RESUBMIT): Move(State.WAITING, Party.VENDOR, "optional", Party.MAINTAINERS, is_wordless=True),
    (State.RETURNED, Verb.WITHDRAW): Move(State.WITHDRAWN, Party.VENDOR, "optional", Party.NOBODY, is_wordless=True),
}

RECUSAL_OWN = "Nobody decides on their own proposal"
RECUSAL_COLLEAGUE = "Nobody decides on a proposal of their own organisation"


def recusal(verb: Verb, *, is_proposer: bool, is_colleague: bool) -> str:
    """Why someone may not decide on a proposal, in one sentence; empty when they may, or when the verb decides nothing.

    `is_colleague`: their organisation is the proposer's. Two people without an organisation have none in common.
    """
    if all(move.by is not Party.MAINTAINERS for (_, known), move in MOVES.items() if known is verb):
        return ""
    if is_proposer:
        return RECUSAL_OWN
    return RECUSAL_COLLEAGUE if is_colleague else ""


def is_for_proposer(verb: Verb) -> bool:
    """Whether only who made the proposal may do this."""
    return any(move.by is Party.VENDOR for (_, known), move in MOVES.items() if known is verb)


# Each submission writes to every maintainer: so many a person may make in 24 hours.
SUBMISSIONS_PER_DAY = 5


# --- what a proposal may say ------------------------------------------------------------------------------------

NAME_MAX, TITLE_MAX, TEXT_MAX, URL_MAX, CONTACT_MAX = 100, 100, 4_000, 500, 254
FULL_NAME_MAX, DEVICE_MAX, WORDS_MAX = 140, 38, 2_000
ONCALLS_MAX, EVIDENCE_MAX = 10, 10


@dataclass(frozen=True)
class Item:
    """One item of evidence."""

    title: str
    text: str = ""
    url: str = ""


@dataclass(frozen=True)
class Draft:
    """What a vendor says in a proposal."""

    platform_name: str
    full_name: str
    oncalls: tuple[str, ...]
    events: tuple[str, ...]
    contact: str
    evidence: tuple[Item, ...]
    device: str = ""


@dataclass(frozen=True)
class Finding:
    """One thing wrong with a draft. `field` is a name of Draft; of an item `evidence.<position from 0>.<name>`."""

    field: str
    text: str


def findings(draft: Draft) -> list[Finding]:
    """Everything wrong with a draft, in the order of its fields; nothing when it can be submitted."""
    return [
        Finding(field, text)
        for field, check in _CHECKS.items()
        for text in [check(getattr(draft, field))]
        if text is not None
    ] + list(_evidence_findings(draft.evidence))


def line_finding(value: str, longest: int) -> str | None:
    """What is wrong with a required text of one line."""
    if not value.strip():
        return "write something."
    return _too_long(value, longest) or hidden_finding(HIDDEN_IN_LINE, value)


def text_finding(value: str, longest: int) -> str | None:
    """What is wrong with a text of many lines, which may be empty."""
    return _too_long(value, longest) or hidden_finding(HIDDEN_IN_TEXT, value)


def url_finding(value: str) -> str | None:
    """What is wrong with a link. The hub never opens it; a reader's browser may."""
    if long := _too_long(value, URL_MAX):
        return long
    if not re.match(r"https?://", value, re.IGNORECASE):
        return "begin with https:// or http://."
    if not URL.fullmatch(value):
        return "write it as a browser copies it: a host name without user@, other characters percent-encoded."
    return None


def _too_long(value: str, longest: int) -> str | None:
    return f"{len(value)} characters, at most {longest:,}." if len(value) > longest else None


def _full_name(value: str) -> str | None:
    return None if FULL_NAME.fullmatch(value) else "write owner/name as it stands on GitHub, not an address."


def _device(value: str) -> str | None:
    if not value or DEVICE.fullmatch(value):
        return None
    return f"one word of at most {DEVICE_MAX} ASCII characters: it ends the label ciflow/crcr/<device>."


def _oncalls(value: tuple[str, ...]) -> str | None:
    if not 0 < len(value) <= ONCALLS_MAX:
        return f"name 1 to {ONCALLS_MAX} GitHub logins, a comma between two."
    if wrong := [login for login in value if not LOGIN.fullmatch(login)]:
        return f"{wrong[0][:60]!r} is not a GitHub login: write it without @."
    if len({login.lower() for login in value}) < len(value):
        return "name each login once."
    return None


def _events(value: tuple[str, ...]) -> str | None:
    if not value or not set(value) <= set(EVENTS):
        return f"choose at least one of: {', '.join(EVENTS)}."
    return None


def _contact(value: str) -> str | None:
    try:
        validate_email(value)
    except ValidationError:
        return "write an e-mail address."
    return _too_long(value, CONTACT_MAX) or hidden_finding(HIDDEN_IN_LINE, value)


_CHECKS: dict[str, Callable[..., str | None]] = {
    "platform_name": lambda value: line_finding(value, NAME_MAX),
    "full_name": _full_name,
    "device": _device,
    "oncalls": _oncalls,
    "events": _events,
    "contact": _contact,
}


def _evidence_findings(items: tuple[Item, ...]) -> Iterator[Finding]:
    if not 0 < len(items) <= EVIDENCE_MAX:
        yield Finding("evidence", f"give 1 to {EVIDENCE_MAX} items about the hardware.")
    for position, item in enumerate(items[:EVIDENCE_MAX]):
        checks = {
            "title": line_finding(item.title, TITLE_MAX),
            "text": text_finding(item.text, TEXT_MAX) if item.text or item.url else "write a text, or give a link.",
            "url": url_finding(item.url) if item.url else None,
        }
        for name, text in checks.items():
            if text is not None:
                yield Finding(f"evidence.{position}.{name}", text)
