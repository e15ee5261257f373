"""The e-mails about proposals: pure text. What, who acts next, and the link; nothing in it that a page would hide."""

import datetime
from dataclasses import dataclass

from apps.governance.enums import Party, State, Verb
from apps.governance.policy import NEXT_ACTOR, PROPOSED_LEVEL
from apps.platforms.policy import LEVELS


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
) -> Letter:
    """What one transition says to who is told of it."""
    level = LEVELS[PROPOSED_LEVEL].code
    what = {
        Verb.SUBMIT: f"{actor} proposes {full_name} ({platform_name}) for {level}.",
        Verb.RESUBMIT: f"{actor} proposes {full_name} ({platform_name}) for {level} again.",
        Verb.RETURN: f"{actor} returned the proposal of {full_name} for {level}.",
        Verb.ACCEPT: f"{actor} accepted the proposal: {full_name} is listed at {level}.",
        Verb.WITHDRAW: f"{actor} withdrew the proposal of {full_name} for {level}.",
    }[verb]
    heading = {
        Verb.RETURN: "What is missing:",
        Verb.ACCEPT: "The reason:",
        Verb.RESUBMIT: "What changed:",
        Verb.WITHDRAW: "Why:",
    }
    next_step = {
        State.WAITING: "a maintainer accepts it with a reason, or returns it with what is missing",
        State.RETURNED: "complete the proposal and submit it again, or withdraw it",
        State.ACCEPTED: "let your CI report its first callbacks; they are private at this level",
        State.WITHDRAWN: "nothing",
    }[state]
    next_actor = NEXT_ACTOR[state]
    who = f"{next_actor.label}: " if next_actor is not Party.NOBODY else ""
    parts = [
        what,
        f"{heading[verb]}\n\n{_quoted(words)}" if words and verb in heading else "",
        f"Next: {who}{next_step}.",
        f"How: {first_callback}" if state is State.ACCEPTED else "",
        link,
        f"--\nAccelHub, as of {at.astimezone(datetime.UTC):%Y-%m-%d %H:%M:%S} UTC. Nobody reads answers to this.",
    ]
    title = {Verb.ACCEPT: f"is listed at {level}", Verb.RETURN: "was returned"}.get(verb, "waits for a decision")
    return Letter(f"[AccelHub] {full_name} {title}", "\n\n".join(filter(None, parts)) + "\n")


def _quoted(words: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in words.splitlines())
