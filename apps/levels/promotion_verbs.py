"""Who may do what with a promotion: one table, for page and API."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.levels import promoting
from apps.levels.models import Promotion
from apps.levels.promoting import decision_recusal
from apps.platforms.selectors import may_on_platform


@dataclass(frozen=True)
class Offer:
    """A verb: the permission on the platform that it takes, what has to be said, whether it decides (and so asks for
    somebody independent), and the words for people."""

    permission: Permission
    fields: tuple[str, ...]
    act: Callable[..., Any]
    title: str
    effect: str
    is_decision: bool = False


OFFERS: dict[str, Offer] = {
    "approve": Offer(
        Permission.PROMOTION_DECIDE,
        ("reason", "note"),
        promoting.approve,
        "Approve",
        "In force once enough have approved and the time for objections is over; after an objection at once.",
        is_decision=True,
    ),
    "object": Offer(
        Permission.PROMOTION_DECIDE,
        ("criterion", "words"),
        promoting.object_to,
        "Object",
        "The decision becomes explicit; approvals given before do not count.",
    ),
    "decline": Offer(
        Permission.PROMOTION_DECIDE, ("reason",), promoting.decline, "Decline", "Ends it.", is_decision=True
    ),
    "freeze": Offer(
        Permission.PROMOTION_OPEN,
        (),
        promoting.freeze_anew,
        "Freeze the evidence anew",
        "Approvals do not count any more, and the time for objections begins anew.",
    ),
    "withdraw": Offer(
        Permission.PROMOTION_OPEN,
        ("reason",),
        promoting.withdraw,
        "Withdraw",
        "Ends it; another can be opened.",
    ),
}


def offered(promotion: Promotion, user: Any) -> list[str]:
    """The verbs that this user may use now, in the order of the table."""
    if not promotion.is_open:
        return []
    return [verb for verb in OFFERS if not refusal(verb, promotion, user)]


def refusal(verb: str, promotion: Promotion, user: Any) -> str:
    """Why this user may not, in one sentence; empty where they may."""
    offer, platform = OFFERS[verb], promotion.repository.platform
    if not may_on_platform(user, offer.permission, platform):
        who = (
            "maintainers"
            if offer.permission is Permission.PROMOTION_DECIDE
            else f"maintainers and members of {platform.name}"
        )
        return f"Only {who} may do this."
    return decision_recusal(promotion, user) if offer.is_decision else ""


def perform(
    verb: str, *, promotion: Promotion, revision: int, said: dict[str, Any], user: Any, now: datetime.datetime
) -> None:
    """Do it, with what `fields` name. Raises Problem `not_permitted`, and what the verb's service raises."""
    offer = OFFERS[verb]
    if not may_on_platform(user, offer.permission, promotion.repository.platform):
        raise Problem("not_permitted", refusal(verb, promotion, user))
    given = {name: said.get(name, "") for name in offer.fields}
    offer.act(promotion=promotion, expected_revision=revision, by=user, now=now, **given)
