"""The e-mails about proposals, alarms and events of the log: pure text. What, who acts next, the link; nothing that a
page would hide."""

import datetime
from dataclasses import dataclass

from apps.audit.enums import Action
from apps.governance.enums import Party, State, Verb
from apps.governance.policy import NEXT_ACTOR, PROPOSED_LEVEL
from apps.platforms.enums import AlarmKind
from apps.platforms.policy import LEVELS
from apps.platforms.sync_policy import GUARDS

_SUBJECT_MAX = 150


@dataclass(frozen=True)
class Letter:
    subject: str
    body: str


def letter(
    verb: Verb,
    *,
    full_name: str,
    platform_name: str,
    state: State,
    actor: str,
    words: str,
    at: datetime.datetime,
    link: str,
    first_callback: str,
    waits_for_file: bool = False,
) -> Letter:
    """What one transition says to who is told of it. `waits_for_file`: an acceptance that upstream's file has to say
    before it is in force."""
    level = LEVELS[PROPOSED_LEVEL].code
    listed = f"will be listed at {level} when upstream's file says so" if waits_for_file else f"is listed at {level}"
    what = {
        Verb.SUBMIT: f"{actor} proposes {full_name} ({platform_name}) for {level}.",
        Verb.RESUBMIT: f"{actor} proposes {full_name} ({platform_name}) for {level} again.",
        Verb.RETURN: f"{actor} returned the proposal of {full_name} for {level}.",
        Verb.ACCEPT: f"{actor} accepted the proposal: {full_name} {listed}.",
        Verb.WITHDRAW: f"{actor} withdrew the proposal of {full_name} for {level}.",
        Verb.PUT_BACK: f"The proposal of {full_name} for {level} was accepted, and upstream's file does not say so.",
    }[verb]
    heading = {
        Verb.RETURN: "What is missing:",
        Verb.ACCEPT: "The reason:",
        Verb.RESUBMIT: "What changed:",
        Verb.WITHDRAW: "Why:",
        Verb.PUT_BACK: "How its pull request ended:",
    }
    next_step = {
        State.WAITING: "a maintainer accepts it with a reason, or returns it with what is missing",
        State.RETURNED: "complete the proposal and submit it again, or withdraw it",
        State.ACCEPTED: "let your CI report its first callbacks; they are private at this level",
        State.WITHDRAWN: "nothing",
    }[state]
    if waits_for_file and verb is Verb.ACCEPT:
        next_step = "upstream merges the pull request on its allowlist, linked from the proposal's page"
    next_actor = NEXT_ACTOR[state]
    who = f"{next_actor.label}: " if next_actor is not Party.NOBODY else ""
    parts = [
        what,
        f"{heading[verb]}\n\n{_quoted(words)}" if words and verb in heading else "",
        f"Next: {who}{next_step}.",
        f"How: {first_callback}" if state is State.ACCEPTED else "",
        link,
        _foot(at),
    ]
    accepted = f"is accepted for {level}" if waits_for_file else listed
    title = {Verb.ACCEPT: accepted, Verb.RETURN: "was returned"}.get(verb, "waits for a decision")
    return Letter(f"[AccelHub] {full_name} {title}", "\n\n".join(filter(None, parts)) + "\n")


def alarm_letter(*, kind: AlarmKind, detail: str, at: datetime.datetime, link: str) -> Letter:
    """What an alarm about upstream's allowlist file says to whoever looks after it."""
    guard = GUARDS[kind]
    accept = ", or a maintainer accepts it as it is" if guard.can_be_accepted else ""
    parts = [
        "The allowlist file upstream is not taken. The last good copy stays in force.",
        f"{guard.when} What was seen:\n\n{_quoted(detail)}",
        f"Next: somebody repairs the file{accept}.",
        link,
        _foot(at),
    ]
    return Letter(f"[AccelHub] Allowlist file not taken: {kind.label}", "\n\n".join(parts) + "\n")


@dataclass(frozen=True)
class EventLetter:
    """What an e-mail about an event of the log says beside the event's own words: who acts next, and the page `route`
    of its subject: by its public id, or by the two halves of a repository's name."""

    route: str
    next_step: str
    is_by_name: bool = False


_DECIDE = "a maintainer of another organisation looks at the evidence, then approves, objects or declines"
_ANSWER = "maintainers decide explicitly, with the objections before them; the platform may answer them"
EVENT_LETTERS: dict[Action, EventLetter] = {
    Action.PROMOTION_OPENED: EventLetter("levels:promotion", _DECIDE),
    Action.PROMOTION_OBJECTED: EventLetter("levels:promotion", _ANSWER),
    Action.PROMOTION_HELD: EventLetter(
        "levels:promotion", "somebody freezes the evidence anew once every criterion is met again"
    ),
    Action.PROMOTION_DECLINED: EventLetter(
        "levels:promotion", "the platform mends what the reason names and opens another, or appeals"
    ),
    Action.PROMOTION_OVERTAKEN: EventLetter("levels:promotion", "nothing"),
    Action.LEVEL_CHANGED: EventLetter(
        "governance:evaluation", "the platform sees what staying at this level asks for", is_by_name=True
    ),
    Action.LEVEL_DECIDED: EventLetter(
        "governance:evaluation", "upstream merges the pull request on its allowlist", is_by_name=True
    ),
    Action.QUARANTINE_BROKEN: EventLetter(
        "quarantine:quarantine",
        "whoever looks after the test mends it, or what it tests. Its failures count again",
    ),
    Action.NOTICE_OPENED: EventLetter(
        "levels:notice",
        "the platform's members bring it back until the deadline, or answer; after it a maintainer decides",
    ),
    Action.NOTICE_MET_AGAIN: EventLetter("levels:notice", "nothing, the notice is over"),
    Action.NOTICE_LIFTED: EventLetter("levels:notice", "nothing, the notice is over"),
    Action.NOTICE_DEMOTED: EventLetter(
        "levels:notice", "the platform's members meet what the level asks for, then it can be proposed again"
    ),
    Action.DOWNGRADED: EventLetter("levels:downgrade", "a maintainer undoes it or makes it formal by the deadline"),
    Action.DOWNGRADE_OVERDUE: EventLetter("levels:downgrade", "a maintainer undoes it or makes it formal"),
    Action.DOWNGRADE_UNDONE: EventLetter("levels:downgrade", "nothing, the level is as it was before"),
    Action.DOWNGRADE_CONFIRMED: EventLetter(
        "levels:downgrade", "the platform's members meet what the level asks for, then it can be proposed again"
    ),
    Action.WAY_BACK_REACHED: EventLetter(
        "governance:evaluation", "a member of the platform or a maintainer proposes it", is_by_name=True
    ),
    Action.APPEAL_OPENED: EventLetter(
        "appeals:appeal", "a maintainer of another organisation than the platform's and the decision's decides by then"
    ),
    Action.APPEAL_PAUSED: EventLetter("appeals:appeal", "whoever was asked answers; the deadline runs on by itself"),
    Action.APPEAL_OVERDUE: EventLetter("appeals:appeal", "a maintainer of another organisation decides it"),
    Action.APPEAL_WITHDRAWN: EventLetter("appeals:appeal", "nobody. What was contested stays as it is"),
    **dict.fromkeys(
        (Action.APPEAL_UPHELD, Action.APPEAL_AMENDED, Action.APPEAL_OVERTURNED),
        EventLetter("appeals:appeal", "nobody. The same rows and the same decision are not appealed twice"),
    ),
    Action.BREAKER_OPENED: EventLetter(
        "gate:breaker",
        "the platform mends what fails; runs on main that pass close it, or a maintainer of another organisation",
    ),
    Action.BREAKER_CLOSED: EventLetter("gate:breaker", "nobody: its failures block pull requests again"),
}


def event_letter(*, summary: str, reason: str, next_step: str, at: datetime.datetime, link: str) -> Letter:
    """What an event of the log says to who is told of it."""
    # Names of tests may hold anything, a heading no line breaks.
    summary = " ".join(summary.split())
    parts = [summary, f"Why:\n\n{_quoted(reason)}" if reason else "", f"Next: {next_step}.", link, _foot(at)]
    title = summary if len(summary) <= _SUBJECT_MAX else f"{summary[: _SUBJECT_MAX - 1]}…"
    return Letter(f"[AccelHub] {title}", "\n\n".join(filter(None, parts)) + "\n")


def _foot(at: datetime.datetime) -> str:
    return f"--\nAccelHub, as of {at.astimezone(datetime.UTC):%Y-%m-%d %H:%M:%S} UTC. Nobody reads answers to this."


def _quoted(words: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in words.splitlines())
