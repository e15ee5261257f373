"""ACCELHUB_MAINTAINER_TEAM: who is in the GitHub team at sign-in is a maintainer, and nothing else changes with it."""

from typing import Any

import pytest

from apps.accounts.models import RoleGrant, User
from apps.accounts.policy import Role
from apps.accounts.services import grant_role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.simulator.standin import GitHubStandIn
from tests.factories.listing import TESTS
from tests.live import Hub
from tests.sign_in import Browser

TEAM = "acme/crew"


@pytest.fixture(autouse=True)
def _team(github: GitHubStandIn, settings: Any) -> None:
    settings.MAINTAINER_TEAM = TEAM
    settings.SOCIAL_AUTH_GITHUB_SCOPE = ["user:email", "read:org"]
    github.people.add("ada", teams={TEAM, "acme/others"})


def grants() -> set[tuple[str, str]]:
    return set(RoleGrant.objects.values_list("role", "source"))


def told() -> list[dict[str, Any]]:
    """The log, oldest first, without what every event has."""
    keys = ("action", "actor", "summary", "before", "after", "reason", "evidence", "is_decision")
    return [{key: body_of(event)[key] for key in keys} for event in Event.objects.order_by("seq")]


HUB = {"kind": "hub", "id": "hub", "label": "AccelHub"}


def test_who_is_in_the_team_becomes_maintainer_and_who_left_it_is_none(github: GitHubStandIn, hub: Hub) -> None:
    Browser(hub).sign_in("ada")
    assert grants() == {("maintainer", "team")}
    Browser(hub).sign_in("ada")  # again: nothing new
    github.people.put_in_teams("ada", {"acme/others"})
    Browser(hub).sign_in("ada")
    assert grants() == set()
    Browser(hub).sign_in("ada")
    common = {"actor": HUB, "is_decision": False}
    assert told() == [
        common
        | {
            "action": "user.role_granted",
            "summary": "ada became maintainer",
            "before": {},
            "after": {"role": "maintainer"},
            "reason": "in the GitHub team acme/crew",
            "evidence": {},
        },
        common
        | {
            "action": "user.role_removed",
            "summary": "ada is no longer maintainer",
            "before": {"role": "maintainer"},
            "after": {},
            "reason": "not in the GitHub team acme/crew",
            "evidence": {"sources": ["team"]},
        },
    ]


def test_a_role_given_by_hand_stays_when_the_team_is_left(github: GitHubStandIn, hub: Hub) -> None:
    Browser(hub).sign_in("ada")
    grant_role(user=User.objects.get(), role=Role.MAINTAINER, actor=TESTS, now=now())
    grant_role(user=User.objects.get(), role=Role.OPERATOR, actor=TESTS, now=now())
    github.people.put_in_teams("ada", set())
    browser = Browser(hub)
    browser.sign_in("ada")
    assert grants() == {("maintainer", "hand"), ("operator", "hand")}
    assert told()[-1]["summary"] == "ada is maintainer by hand only"


def test_an_invitation_to_the_team_is_no_membership(github: GitHubStandIn, hub: Hub) -> None:
    github.people.put_in_teams("ada", set(), pending={TEAM})
    browser = Browser(hub)
    browser.sign_in("ada")
    assert (browser.name, grants(), told()) == ("ada", set(), [])


def test_a_team_of_the_same_name_elsewhere_counts_for_nothing(github: GitHubStandIn, hub: Hub) -> None:
    github.people.put_in_teams("ada", {"evil/crew"})
    Browser(hub).sign_in("ada")
    assert grants() == set()


@pytest.mark.parametrize("status", [0, 502, 429])
def test_while_github_cannot_say_nothing_changes(github: GitHubStandIn, hub: Hub, status: int) -> None:
    Browser(hub).sign_in("ada")
    github.people.put_in_teams("ada", set())
    github.people.add("eve", teams={TEAM})
    for login in ("ada", "eve"):
        github.fail(r"/memberships/", status)
        browser = Browser(hub)
        browser.sign_in(login)
        assert browser.name == login
    assert set(RoleGrant.objects.values_list("user__username", "source")) == {("ada", "team")}


def test_without_the_setting_the_teams_roles_go(github: GitHubStandIn, hub: Hub, settings: Any) -> None:
    Browser(hub).sign_in("ada")
    settings.MAINTAINER_TEAM = ""
    Browser(hub).sign_in("ada")
    assert grants() == set()
    assert told()[-1]["reason"] == "no GitHub team has maintainers"
