"""Levels and the rules for changing them directly: tables and pure functions. /policy/ prints them.

Source: docs/protocol.md, "Levels" (upstream's Cross-Repository CI Relay).
"""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, fields

PULL_REQUEST = "pull_request"
NIGHTLY = "nightly"
EVENTS = (PULL_REQUEST, NIGHTLY)
# Upstream's webhooks that a repository chooses from; the allowlist's `pull_request` grants both.
WEBHOOK_EVENTS = (PULL_REQUEST, "push")

# The claims of a Buildkite token that the mapping of a pipeline may require a value of.
PIPELINE_CLAIMS = ("build_branch", "build_tag", "build_source", "step_key")


@dataclass(frozen=True)
class Level:
    """One rung. The texts from `events` on are what the level does, as pages print it."""

    number: int
    name: str
    events: str
    results: str
    check: str
    blocks: str

    @property
    def code(self) -> str:
        return f"L{self.number}"


LEVELS: tuple[Level, ...] = (
    Level(0, "Unlisted", "not sent", "not kept", "none", "no"),
    Level(1, "Onboarding", "sent", "private: only the platform's members see its callbacks", "none", "no"),
    Level(2, "Observation", "sent", "public, on this hub only", "none", "no"),
    Level(3, "Stable", "sent", "public", "on a pull request labelled ciflow/crcr/<device>", "no"),
    Level(4, "Mature", "sent", "public", "on every pull request", "yes, while its check is failed or unfinished"),
)
BY_CODE = {level.code: level for level in LEVELS}

UNLISTED, ONBOARDING, OBSERVATION, STABLE, MATURE = range(5)

# From this level on a repository's callbacks become public jobs; below it they are private (ONBOARDING) or not kept.
PUBLIC_FROM = OBSERVATION
# From this level on what its jobs say can stand on an upstream pull request, as check runs.
CHECKS_FROM = STABLE
# A raise beyond this level comes with frozen evidence and approvals, or with an imported allowlist.
DIRECT_UP_TO = OBSERVATION

CONSEQUENCE_TITLES = {
    "events": "Upstream events",
    "results": "Results",
    "check": "Check run on the pull request",
    "blocks": "Blocks a merge",
}


@dataclass(frozen=True)
class Consequence:
    """What one level change does to one thing: `before` and `after` as the levels' table says it."""

    title: str
    before: str
    after: str

    @property
    def is_change(self) -> bool:
        return self.before != self.after


def consequences(before: int, after: int) -> list[Consequence]:
    """What will change, thing by thing, unchanged ones included."""
    old, new = LEVELS[before], LEVELS[after]
    names = [f.name for f in fields(Level) if f.name in CONSEQUENCE_TITLES]
    return [Consequence(CONSEQUENCE_TITLES[name], getattr(old, name), getattr(new, name)) for name in names]


def refuse_direct_change(before: int, after: int, *, device: str) -> str | None:
    """Why this level cannot be set directly, as a sentence that says what to do; None where it can be.

    `device` is the label word that L3 needs: the repository's, or the one sent with the change.
    """
    if after == before:
        return f"The repository is at {LEVELS[before].code} already."
    if after > before and after > DIRECT_UP_TO:
        return (
            f"{LEVELS[after].code} cannot be reached by a direct change: raising goes up to "
            f"{LEVELS[DIRECT_UP_TO].code}. Open a promotion: it freezes the evidence that maintainers approve."
        )
    if after == STABLE and not device:
        return "L3 needs a device, the word in the label ciflow/crcr/<device>: send one."
    return None


def direct_targets(level: int) -> list[Level]:
    """The levels that a direct change can set from here."""
    return [target for target in LEVELS if refuse_direct_change(level, target.number, device="any") is None]


def suggested_target(level: int) -> Level:
    """The level that a page offers first: the next one up where it can be set directly, else the next one down."""
    targets = direct_targets(level)
    return next((target for target in targets if target.number == level + 1), targets[-1])


def default_platform_slug(full_name: str) -> str:
    """`owner-repo` in lower case: the platform that an unknown repository gets. Leaves room for `-2` behind it."""
    return "".join(c if c.isalnum() else "-" for c in full_name.lower()).strip("-")[:70]


# --- maintenance windows ----------------------------------------------------------------------------------------

WINDOW_NOTICE_HOURS = 24
WINDOW_CAP_HOURS, WINDOW_CAP_DAYS = 72, 30
WINDOW_AHEAD_DAYS = 90


@dataclass(frozen=True)
class WindowRule:
    """One rule about maintenance windows, as pages print it."""

    what: str
    limit: str
    why: str


WINDOW_RULES: tuple[WindowRule, ...] = (
    WindowRule("Notice", f"at least {WINDOW_NOTICE_HOURS} h ahead", "it is announced, not declared after a bad night"),
    WindowRule("Ahead", f"at most {WINDOW_AHEAD_DAYS} d", "what lies further ahead is not known yet"),
    WindowRule(
        "All windows of a repository",
        f"at most {WINDOW_CAP_HOURS} h in any {WINDOW_CAP_DAYS} d",
        "what is not sent stands in no figure",
    ),
    WindowRule("Two windows", "do not overlap", "each hour is announced once"),
)

Span = tuple[datetime.datetime, datetime.datetime]


def refuse_window(window: Span, others: Iterable[Span], *, now: datetime.datetime) -> str | None:
    """Why a maintenance window cannot be announced, as a sentence that says what to do; None where it can be.

    `others` are the repository's other windows that were not withdrawn.
    """
    start, end = window
    others = list(others)
    notice, ahead = datetime.timedelta(hours=WINDOW_NOTICE_HOURS), datetime.timedelta(days=WINDOW_AHEAD_DAYS)
    if end <= start:
        return f"ends_at: {_minute(end)} is not after the start, {_minute(start)}."
    if start < now + notice:
        return f"starts_at: {_minute(start)} is too soon, windows are announced {WINDOW_NOTICE_HOURS} h ahead."
    if start > now + ahead:
        return f"starts_at: {_minute(start)} is too far ahead, at most {WINDOW_AHEAD_DAYS} d."
    for other in others:
        if other[0] < end and start < other[1]:
            return f"starts_at: it overlaps the window from {_minute(other[0])} to {_minute(other[1])}."
    longest, cap = most_within([window, *others]), datetime.timedelta(hours=WINDOW_CAP_HOURS)
    if longest > cap:
        hours = longest / datetime.timedelta(hours=1)
        return f"ends_at: that makes {hours:.1f} h within {WINDOW_CAP_DAYS} d, at most {WINDOW_CAP_HOURS} h."
    return None


def most_within(windows: list[Span]) -> datetime.timedelta:
    """The most maintenance that any WINDOW_CAP_DAYS in a row hold. It is reached where one begins or ends."""
    days = datetime.timedelta(days=WINDOW_CAP_DAYS)
    spans = [(start, start + days) for start, _ in windows] + [(end - days, end) for _, end in windows]
    return max((_within(windows, span) for span in spans), default=datetime.timedelta())


def _within(windows: list[Span], span: Span) -> datetime.timedelta:
    parts = (min(end, span[1]) - max(start, span[0]) for start, end in windows)
    return sum((part for part in parts if part > datetime.timedelta()), datetime.timedelta())


def _minute(moment: datetime.datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
