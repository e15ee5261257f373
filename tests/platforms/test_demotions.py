"""Upstream's own demotion pull requests: recorded while they are open, and how they end."""

import pytest
from django.test import override_settings

from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.platforms.models import Demotion, Repository
from apps.platforms.selectors import has_open_demotion
from tests.factories.upstream import Upstream

pytestmark = pytest.mark.django_db

LISTED = "L2:\n  - acme/two\nL3:\n  npu:\n    acme/three:\n"
LOWERED = "L2:\n  - acme/two\n  - acme/three\nL3:\n"


def is_open() -> bool:
    return has_open_demotion(Repository.objects.get(full_name="acme/three").pk)


def told() -> list[tuple[str, str]]:
    events = Event.objects.filter(action__startswith="repository.demotion").order_by("seq")
    return [(event.action, body_of(event)["summary"]) for event in events]


def rows() -> list[tuple[str, int, str, str, int, bool]]:
    names = ("repository__full_name", "pull_number", "title", "state", "level_before", "ended_at")
    found = Demotion.objects.order_by("pk").values_list(*names)
    return [(*row[:-1], row[-1] is not None) for row in found]


def test_one_that_is_open_is_recorded_once(upstream: Upstream) -> None:
    upstream.says(LISTED)
    assert not is_open()
    upstream.demote("Acme/Three", LOWERED)
    for _ in range(2):
        upstream.round()
    assert rows() == [("acme/three", 1, "[CRCR] Demote Acme/Three from L3 to L2", "open", 3, False)]
    assert (is_open(), Repository.objects.get(full_name="acme/three").level) == (True, 3)
    assert told() == [
        (
            "repository.demotion_proposed",
            "Upstream's demotion #1 of acme/three is open: no new check runs meanwhile",
        )
    ]
    with override_settings(ALLOWLIST_AUTHORITY="hub"):
        assert not is_open()


@pytest.mark.parametrize(
    ("end", "level", "state"), [("merge", 2, "merged"), ("land", 2, "merged"), ("close", 3, "closed")]
)
def test_it_ends_as_upstream_ends_it(upstream: Upstream, end: str, level: int, state: str) -> None:
    upstream.says(LISTED)
    upstream.demote("acme/three", LOWERED)
    upstream.round()
    getattr(upstream.held, end)(1)
    for _ in range(2):
        upstream.round()
    assert Repository.objects.get(full_name="acme/three").level == level
    assert ([row[3:] for row in rows()], is_open()) == ([(state, 3, True)], False)
    assert told()[1:] == [("repository.demotion_ended", f"Upstream's demotion #1 of acme/three was {state}")]


def test_one_that_is_opened_again_is_open_again(upstream: Upstream) -> None:
    from dataclasses import replace

    upstream.says(LISTED)
    pull = upstream.demote("acme/three", LOWERED)
    upstream.round()
    upstream.held.close(1)
    upstream.round()
    upstream.held._pulls[1] = replace(pull, state="open")
    upstream.round()
    assert is_open()
    upstream.held.close(1)
    upstream.round()
    assert ([row[3] for row in rows()], [action for action, _ in told()]) == (
        ["closed"],
        ["repository.demotion_proposed", "repository.demotion_ended"] * 2,
    )


@pytest.mark.parametrize("rest", ["/acme", "/acme/three/more", "/acme/unknown", "x/acme/three"])
def test_other_branches_are_of_no_concern(upstream: Upstream, rest: str) -> None:
    upstream.says(LISTED)
    upstream.demote("acme/three", LOWERED, branch=f"crcr-demotion{rest}")
    upstream.round()
    assert rows() == []


def test_a_branch_that_is_left_over_says_nothing(upstream: Upstream) -> None:
    upstream.says(LISTED)
    upstream.held.create_branch("crcr-demotion/acme/three", upstream.held.branches()["main"])
    upstream.round()
    assert rows() == []
