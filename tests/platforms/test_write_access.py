"""“I maintain this repository”: who may push to it, as GitHub tells their own token, speaks for its platform."""

from typing import Any

import pytest

from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.core.github import RepositoryIdentity
from apps.platforms.models import Membership, Repository
from apps.platforms.pins import pin_identity
from apps.simulator.directory import RepositoryIds
from apps.simulator.standin import GitHubStandIn
from tests.factories.listing import listed, user
from tests.factories.pages import Page
from tests.live import Hub
from tests.sign_in import Browser

REPO, CLAIM, MEMBERS = "acme/torch", "/repositories/acme/torch/claim/", "/platforms/acme-torch/members/"


@pytest.fixture
def acme(github: GitHubStandIn, hub: Hub) -> RepositoryIds:
    """The listed repository, pinned to its ids at the stand-in."""
    ids = github.add_repository(REPO)
    pin(listed({REPO: 1})[REPO], ids)
    return ids


def pin(repository: Repository, ids: RepositoryIds) -> None:
    identity = RepositoryIdentity(repository.full_name, ids.repository_id, ids.owner_id)
    source = Repository.PinSource.GITHUB_API
    pin_identity(repository_id=repository.pk, identity=identity, source=source, now=now())


@pytest.fixture
def browser(github: GitHubStandIn, hub: Hub) -> Browser:
    """Ada's, who came through GitHub."""
    github.people.add("ada")
    browser = Browser(hub)
    browser.sign_in("ada")
    return browser


def members() -> list[str]:
    return list(Membership.objects.values_list("user__username", flat=True))


def test_who_may_push_speaks_for_the_platform(github: GitHubStandIn, acme: RepositoryIds, browser: Browser) -> None:
    github.people.allow_push("ada", acme.repository_id)
    assert "I maintain this repository" in Page(browser.get(MEMBERS)).text
    answer = browser.post(CLAIM)
    assert (answer.status_code, answer.headers["Location"], members()) == (302, MEMBERS, ["ada"])
    event = Event.objects.first()
    assert event is not None
    body = body_of(event)
    assert {key: body[key] for key in ("action", "summary", "after", "reason", "evidence", "is_decision")} == {
        "action": "platform.member_added",
        "summary": "ada speaks for torch",
        "after": {"user": "ada"},
        "reason": "may push to acme/torch",
        "evidence": {
            "repository": str(Repository.objects.get().public_id),
            "github_id": str(acme.repository_id),
        },
        "is_decision": False,
    }
    assert "Do you maintain it?" not in Page(browser.get(MEMBERS)).text
    browser.post(CLAIM)  # again: nothing
    assert Event.objects.first() == event


def refused(answer: Any, code: str = "write_access") -> str:
    """The reason on the page that refuses."""
    page = Page(answer)
    assert (page.facts[""]["Code"], members()) == (code, [])
    return page.text


def test_who_may_not_push_does_not(github: GitHubStandIn, acme: RepositoryIds, browser: Browser) -> None:
    other = github.add_repository("acme/docs")
    github.people.allow_push("ada", other.repository_id)
    answer = browser.post(CLAIM)
    assert answer.status_code == 403
    assert f"GitHub does not say that ada may push to the repository with the id {acme.repository_id}" in refused(
        answer
    )


def test_another_repository_under_the_listed_name_proves_nothing(
    github: GitHubStandIn, acme: RepositoryIds, browser: Browser
) -> None:
    github.rename_repository(REPO, "acme/elsewhere")
    squatter = github.add_repository(REPO)
    github.people.allow_push("ada", squatter.repository_id)
    answer = browser.post(CLAIM)
    assert (answer.status_code, "which acme/torch was listed as" in refused(answer)) == (403, True)


def test_the_listed_repository_is_found_under_its_new_name(
    github: GitHubStandIn, acme: RepositoryIds, browser: Browser
) -> None:
    github.rename_repository(REPO, "acme/elsewhere")
    github.people.allow_push("ada", acme.repository_id)
    assert (browser.post(CLAIM).status_code, members()) == (302, ["ada"])


def test_a_private_repository_is_nobodys_who_cannot_see_it(
    github: GitHubStandIn, acme: RepositoryIds, browser: Browser
) -> None:
    github.add_repository(REPO, private=True)
    refused(browser.post(CLAIM))
    github.people.allow_push("ada", acme.repository_id)
    assert browser.post(CLAIM).status_code == 302


def test_about_a_repository_that_is_not_pinned_nothing_can_be_proven(
    github: GitHubStandIn, hub: Hub, browser: Browser
) -> None:
    ids = github.add_repository(REPO)
    listed({REPO: 1})
    github.people.allow_push("ada", ids.repository_id)
    assert "GitHub has not told its numeric id yet" in Page(browser.get(MEMBERS)).text
    assert "acme/torch is not pinned to GitHub's id yet" in refused(browser.post(CLAIM))


@pytest.mark.parametrize("status", [0, 502])
def test_while_github_does_not_answer_nothing_is_decided(
    github: GitHubStandIn, acme: RepositoryIds, browser: Browser, status: int
) -> None:
    github.people.allow_push("ada", acme.repository_id)
    github.fail(rf"/repos/{REPO}$", status)
    answer = browser.post(CLAIM)
    assert answer.status_code == 503
    refused(answer, "github_unavailable")


def test_a_token_that_was_taken_back_proves_nothing(
    github: GitHubStandIn, acme: RepositoryIds, browser: Browser
) -> None:
    github.people.allow_push("ada", acme.repository_id)
    github.oauth.revoke("ada")
    assert "your sign-in with GitHub may be too old, sign in again" in refused(browser.post(CLAIM))


def test_who_came_with_a_password_is_sent_through_github_first(
    github: GitHubStandIn, acme: RepositoryIds, hub: Hub
) -> None:
    user(username="root")
    browser = Browser(hub)
    browser.post("/accounts/login/", {"username": "root", "password": "password"})
    page = Page(browser.get(MEMBERS))
    assert ("Sign in with GitHub" in page.text, "I maintain this repository" in page.text) == (True, False)
    assert "Your session did not begin with GitHub" in refused(browser.post(CLAIM))
