"""Proposals, made through the real services; and the form that makes one through the front door."""

import datetime
import itertools
from typing import Any

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.governance.models import Proposal
from apps.governance.policy import Draft, Item
from apps.governance.services import (
    accept_proposal,
    resubmit_proposal,
    return_proposal,
    submit_proposal,
    withdraw_proposal,
)
from tests.factories.jobs import days_ago
from tests.factories.listing import user

CARD = Item("The card", "Z2, 64 GB", "https://zephyr.example/z2?sheet=1")
_numbers = itertools.count(1)


def draft(full_name: str = "zephyr/torch", **values: Any) -> Draft:
    """What a vendor says about zephyr/torch."""
    given: dict[str, Any] = {
        "platform_name": "Zephyr NPU",
        "oncalls": ("zoe", "yann"),
        "events": ("pull_request",),
        "contact": "ci@zephyr.example",
        "evidence": (CARD,),
    }
    return Draft(full_name=full_name, **(given | values))


def proposal(
    full_name: str = "zephyr/torch", *, by: User | None = None, at: datetime.datetime | None = None, **values: Any
) -> Proposal:
    """A proposal that waits since `at` (default: three days ago)."""
    by = by or user(username=f"vendor-{next(_numbers)}")
    return submit_proposal(draft=draft(full_name, **values), by=by, now=at or days_ago(3))


def fresh(made: Proposal) -> Proposal:
    """The proposal as the database has it."""
    return Proposal.objects.select_related("proposer", "platform", "repository").get(pk=made.pk)


def maintainer(name: str = "") -> User:
    return user(Role.MAINTAINER, username=name)


def returned(made: Proposal, *, at: datetime.datetime | None = None, words: str = "Which architecture?") -> Proposal:
    """The proposal, given back by a maintainer of its own."""
    return_proposal(proposal=made, words=words, expected_revision=made.revision, by=maintainer(), now=at or days_ago(2))
    return fresh(made)


def resubmitted(made: Proposal, *, at: datetime.datetime | None = None, **values: Any) -> Proposal:
    """A returned proposal, brought back."""
    resubmit_proposal(
        proposal=made,
        draft=draft(made.full_name, **values),
        words="zv2",
        expected_revision=made.revision,
        by=made.proposer,
        now=at or days_ago(2),
    )
    return fresh(made)


def accepted(made: Proposal, *, by: User | None = None, at: datetime.datetime | None = None) -> Proposal:
    """The proposal, accepted."""
    accept_proposal(
        proposal=made,
        reason="the card is there",
        expected_revision=made.revision,
        by=by or maintainer(),
        now=at or days_ago(2),
    )
    return fresh(made)


def withdrawn(made: Proposal, *, at: datetime.datetime | None = None) -> Proposal:
    """The proposal, taken back."""
    withdraw_proposal(proposal=made, words="", expected_revision=made.revision, by=made.proposer, now=at or days_ago(2))
    return fresh(made)


def form(**values: Any) -> dict[str, Any]:
    """What the form of /register/ posts."""
    given = {
        "platform_name": "Zephyr NPU",
        "full_name": "zephyr/torch",
        "oncalls": "zoe, yann",
        "events": ["pull_request"],
        "device": "",
        "contact": "ci@zephyr.example",
        "evidence-TOTAL_FORMS": "3",
        "evidence-INITIAL_FORMS": "0",
        "evidence-0-title": CARD.title,
        "evidence-0-text": CARD.text,
        "evidence-0-url": CARD.url,
    }
    return given | values
