"""The verbs as edges offer them: who may, and which service does it. One table behind page and API."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apps.accounts.services import actor_of
from apps.core.errors import Problem
from apps.platforms.models import Platform
from apps.quarantine import services
from apps.quarantine.enums import Source, State, Verb
from apps.quarantine.models import Quarantine
from apps.quarantine.policy import verbs_in
from apps.quarantine.proofs import proof_of
from apps.quarantine.rules import in_force
from apps.quarantine.selectors import may_change, may_decide
from apps.relay.graph_selectors import commit_of


@dataclass(frozen=True)
class Offer:
    """`decides`: only who may decide (maintainers). `fields`: what is to be said besides the revision."""

    service: Callable[..., Quarantine]
    decides: bool
    fields: tuple[str, ...]
    button: str
    note: str


OFFERS: dict[Verb, Offer] = {
    Verb.NAME_PLATFORM: Offer(services.name_platform, True, ("platform",), "Name it", "Then it is proposed there."),
    Verb.PUT_IN_FORCE: Offer(
        services.put_in_force, False, ("expires_at",), "Put in force", "Results from now on list its failures apart."
    ),
    Verb.DECLINE: Offer(services.decline, False, ("reason",), "Decline", "It leaves the list."),
    Verb.RENEW: Offer(services.renew, False, ("reason",), "Renew", "Once, for as long as the rules allow."),
    Verb.PROPOSE_RELEASE: Offer(
        services.propose_release, False, ("reason", "fix_sha"), "Propose its release", "It stays in force meanwhile."
    ),
    Verb.KEEP: Offer(services.keep, True, ("reason",), "Keep in force", "The release is refused."),
    Verb.RELEASE: Offer(
        services.release, True, ("reason", "unproven"), "Release", "Its failures count again from now on."
    ),
    Verb.REOPEN: Offer(services.reopen, False, ("reason",), "Propose again", "With its history."),
}
# What binds vendors and not those who decide.
_BOUND = (Verb.PUT_IN_FORCE, Verb.RENEW)


def offered(quarantine: Quarantine, user: Any) -> list[Verb]:
    """What this user may do to it now, in the order of the table."""
    possible = verbs_in(State(quarantine.state))
    changes, decides = may_change(user, quarantine.platform), may_decide(user)
    return [verb for verb, offer in OFFERS.items() if verb in possible and (decides if offer.decides else changes)]


def propose(*, platform: Platform, said: dict[str, Any], user: Any, now: datetime.datetime) -> Quarantine:
    """Propose one of `said` (as ProposeForm reads it). Raises Problem `not_permitted`, and whatever the service
    refuses."""
    if not may_change(user, platform):
        raise Problem("not_permitted", "Only members of the platform and maintainers may propose a quarantine.")
    source = Source.MAINTAINER if may_decide(user) else Source.VENDOR
    return services.propose(platform=platform, source=source, actor=actor_of(user), now=now, **said)


def perform(
    verb: Verb, *, quarantine: Quarantine, revision: int, said: dict[str, Any], user: Any, now: datetime.datetime
) -> Quarantine:
    """Do it. Raises Problem `not_permitted`, and whatever the service refuses."""
    if verb not in OFFERS or (verb in verbs_in(State(quarantine.state)) and verb not in offered(quarantine, user)):
        raise Problem("not_permitted", f"{verb}: a maintainer may, or a member of the platform where it says so.")
    if not may_change(user, quarantine.platform):
        raise Problem("not_permitted", f"{verb}: only members of the platform and maintainers may.")
    values = {name: said[name] for name in OFFERS[verb].fields if name in said}
    if verb is Verb.RELEASE:
        is_without = values.pop("unproven", False)
        # In another state the service says so; there is nothing to prove.
        is_open = verb in verbs_in(State(quarantine.state))
        values["proof"] = _proof(quarantine, is_without=is_without, now=now) if is_open else ""
    if verb in _BOUND:
        values["is_bound"] = not may_decide(user)
    if fix := values.get("fix_sha"):
        commit = commit_of(fix.lower())
        if commit is None or commit.position is None:
            raise Problem("malformed", f"fix_sha: {fix} is no commit of main that the hub knows.", "fix_sha")
        values |= {"fix_sha": commit.sha, "fix_place": commit.position}
    return OFFERS[verb].service(quarantine=quarantine, revision=revision, actor=actor_of(user), now=now, **values)


def _proof(quarantine: Quarantine, *, is_without: bool, now: datetime.datetime) -> str:
    """What its release stands on, for the log. Raises Problem `quarantine_unproven` where it stands on too little and
    nobody says that it shall go without."""
    found = proof_of(quarantine, in_force(now), now=now)
    if not found.is_whole and not is_without:
        raise Problem("quarantine_unproven", f"unproven: what is missing: {found.words}.", "unproven")
    said = f"{found.passes} of {found.needed} passes, {found.reds} red"
    return said if found.is_whole else f"without proof: {said}"
