"""Two people act on one proposal at once: one act counts, the other is told."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connections

from apps.audit.models import Event
from apps.core.clock import now
from apps.core.errors import Problem
from apps.governance.models import Proposal, Transition
from apps.governance.services import accept_proposal, return_proposal, submit_proposal, withdraw_proposal
from apps.platforms.models import LevelInterval, Membership, Repository
from tests.factories.listing import user
from tests.factories.proposals import draft, maintainer, proposal
from tests.live import ClonedDatabase


def at_once(*acts: Callable[[], Any]) -> list[str]:
    """Run all at the same moment: what each came to, sorted."""
    all_here = threading.Barrier(len(acts), timeout=30)
    outcomes: list[str] = []

    def run(act: Callable[[], Any]) -> None:
        try:
            all_here.wait()
            act()
            outcomes.append("done")
        except Problem as problem:
            outcomes.append(problem.code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=[act]) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(outcomes)


@pytest.mark.parametrize("other", ["accept", "return", "withdraw"])
def test_exactly_one_of_two_decisions_at_once_counts(cloned_database: ClonedDatabase, other: str) -> None:
    ada, bob = maintainer("ada"), maintainer("bob")
    for number in range(5):
        made = proposal(f"zephyr/torch-{number}")
        before = Event.objects.count()
        act: Callable[[], Any]
        if other == "accept":
            act = partial(accept_proposal, proposal=made, reason="mine", expected_revision=1, by=bob, now=now())
        elif other == "return":
            act = partial(return_proposal, proposal=made, words="mine", expected_revision=1, by=bob, now=now())
        else:
            act = partial(withdraw_proposal, proposal=made, words="", expected_revision=1, by=made.proposer, now=now())
        accept = partial(accept_proposal, proposal=made, reason="mine", expected_revision=1, by=ada, now=now())
        assert at_once(accept, act) == ["done", "proposal_stale"]
        state = Proposal.objects.get(pk=made.pk).state
        is_listed = state == "accepted"
        assert Transition.objects.filter(proposal=made).count() == 2
        assert Event.objects.count() == before + (2 if is_listed else 1)
        assert Repository.objects.filter(full_name=made.full_name, level=1).count() == int(is_listed)
        assert LevelInterval.objects.filter(repository__full_name=made.full_name).count() == int(is_listed)
        assert Membership.objects.filter(user=made.proposer).count() == int(is_listed)


def test_a_repository_is_proposed_once_by_two_at_once(cloned_database: ClonedDatabase) -> None:
    zoe, yann = user(), user()
    for number in range(5):
        names = (f"zephyr/torch-{number}", f"Zephyr/TORCH-{number}")
        acts = [
            partial(submit_proposal, draft=draft(name), by=by, now=now())
            for by, name in zip((zoe, yann), names, strict=True)
        ]
        assert at_once(*acts) == ["already_proposed", "done"]
        assert Proposal.objects.filter(full_name__iexact=names[0]).count() == 1


def test_one_person_at_once_stays_within_the_limit_of_a_day(cloned_database: ClonedDatabase) -> None:
    zoe = user()
    acts = [partial(submit_proposal, draft=draft(f"zephyr/torch-{number}"), by=zoe, now=now()) for number in range(8)]
    assert at_once(*acts) == ["done"] * 5 + ["rate_limited"] * 3
    assert Proposal.objects.count() == 5


def test_two_proposals_accepted_at_once_make_two_platforms(cloned_database: ClonedDatabase) -> None:
    # Both would be called zephyr-torch-npu in addresses.
    one, two = proposal("zephyr/torch-npu"), proposal("zephyr-torch/npu")
    ada = maintainer()
    outcomes = at_once(
        *[
            partial(accept_proposal, proposal=made, reason="mine", expected_revision=1, by=ada, now=now())
            for made in (one, two)
        ]
    )
    # Who loses the race for the slug looks again and decides again.
    assert outcomes in (["done", "done"], ["done", "level_stale"])
    assert Proposal.objects.filter(state="accepted").count() == outcomes.count("done")
    assert Repository.objects.count() == outcomes.count("done")
