"""When a file of upstream's is not taken: a table and pure functions over it. /policy/ prints the table."""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass

from apps.platforms.allowlist import Allowlist, AllowlistError, Entry, parse
from apps.platforms.allowlist_diff import Kind, compare
from apps.platforms.enums import AlarmKind
from apps.platforms.policy import STABLE

# So much of the list may be gone at once. A short list may always lose SHRINK_FREE entries.
SHRINK_SHARE = 0.20
SHRINK_FREE = 2
# So many entries of L3 and L4 may be gone at once: each has check runs on upstream's pull requests.
TOP_GONE_MAX = 1
# A file that GitHub has not shown for so long is an alarm: until then the next round asks again.
SILENT_AFTER = datetime.timedelta(minutes=30)
# A pull request that could not be opened is tried again with every round for so long.
OPENING_GIVEN_UP_AFTER = datetime.timedelta(hours=24)
# A worker that has been opening a pull request for longer than this is lost.
OPENING_LOST_AFTER = datetime.timedelta(minutes=10)
# A decision that was put back is shown to who decides for so long, or until it is decided anew.
PUT_BACK_SHOWN_FOR = datetime.timedelta(days=14)
# Upstream's own demotions that are looked at in one round, and how its script names their branches.
DEMOTIONS_MAX = 50
DEMOTION_PREFIX = "crcr-demotion/"


@dataclass(frozen=True)
class Guard:
    """One reason to keep the last good copy. `can_be_accepted`: a maintainer may say that the file means it."""

    when: str
    can_be_accepted: bool = False


GUARDS: dict[AlarmKind, Guard] = {
    AlarmKind.HTML: Guard("The file is a web page."),
    AlarmKind.EMPTY: Guard("The file is empty, or lists nobody while the hub lists somebody."),
    AlarmKind.UNREADABLE: Guard("The file is not UTF-8, or has a problem that `allowlist lint` names."),
    AlarmKind.SHRINK: Guard(
        f"More than {SHRINK_SHARE:.0%} of the entries are gone at once, and more than {SHRINK_FREE}; or more than "
        f"{TOP_GONE_MAX} of those at L3 and L4.".replace("%", " %"),
        can_be_accepted=True,
    ),
    AlarmKind.REFUSED: Guard("GitHub refuses the file: it is gone, too large, or not for the App."),
    AlarmKind.SILENT: Guard(f"GitHub has not shown the file for {SILENT_AFTER.seconds // 60} minutes."),
}

_PAGE = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Refusal:
    """Why a file is not taken: the guard, and what was seen."""

    kind: AlarmKind
    detail: str


def judge(content: bytes, before: list[Entry], *, is_accepted: bool, former: Mapping[str, str]) -> Allowlist | Refusal:
    """The list that a file is, or why it is not taken in place of `before`, the list in force.

    `is_accepted`: somebody has said that what is gone is meant to be. `former`: present names by former ones.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        return Refusal(AlarmKind.UNREADABLE, f"byte {error.start} is not UTF-8")
    if is_page(text):
        return Refusal(AlarmKind.HTML, f"it begins with {text.strip()[:40]!r}")
    if not text.strip():
        return Refusal(AlarmKind.EMPTY, "it has no content")
    try:
        after = parse(text).renamed(former)
    except AllowlistError as error:
        more = len(error.findings) - 1
        return Refusal(AlarmKind.UNREADABLE, f"{error.findings[0]}{f' (and {more} more)' if more else ''}")
    if before and not after.entries:
        return Refusal(AlarmKind.EMPTY, f"it lists nobody, {len(before)} are listed here")
    gone = [one.entry for one in compare(before, after.entries) if one.kind is Kind.REMOVED]
    top = [entry for entry in gone if entry.level >= STABLE]
    if not is_accepted and (is_shrink(len(gone), len(before)) or len(top) > TOP_GONE_MAX):
        names = ", ".join(f"{entry.full_name} (L{entry.level})" for entry in gone[:10])
        return Refusal(AlarmKind.SHRINK, f"{len(gone)} of {len(before)} entries are gone: {names}")
    return after


def is_page(text: str) -> bool:
    """Whether a text is a web page, whatever was asked for: a sign-in, an error of a proxy."""
    return _PAGE.match(text) is not None


def is_shrink(gone: int, before: int) -> bool:
    """Whether so many of so many entries are too many to go at once."""
    return gone > SHRINK_FREE and gone > SHRINK_SHARE * before


def repository_of_branch(branch: str) -> str | None:
    """The `owner/repo` that a branch of upstream's script is about; None for another branch."""
    owner, _, name = branch.removeprefix(DEMOTION_PREFIX).partition("/")
    if not branch.startswith(DEMOTION_PREFIX) or not owner or not name or "/" in name:
        return None
    return f"{owner}/{name}"
