"""Signing in with GitHub, from the button to the session, against the stand-in's real redirects."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
import requests
from django.core.management import call_command
from django.db import connection, connections
from django.test import RequestFactory
from social_django.models import UserSocialAuth

from apps.accounts.github import keep_token, kept_token
from apps.accounts.models import User, UserSession
from apps.accounts.policy import Role
from apps.accounts.services import account_of_github
from apps.accounts.sessions import SessionStore
from apps.core.clock import now
from apps.core.enums import Kind
from apps.core.github import UserIdentity
from apps.core.models import Installation
from apps.simulator.standin import GitHubStandIn
from tests.factories.listing import user
from tests.factories.pages import Page
from tests.live import Hub
from tests.sign_in import Browser

CALLBACK = "/accounts/github/callback/"


def people() -> dict[str, tuple[str, str, set[Role]]]:
    """Username → GitHub's numeric id, GitHub's login, roles."""
    ids = dict(UserSocialAuth.objects.values_list("user__username", "uid"))
    return {u.username: (ids.get(u.username, ""), u.github_login, u.roles) for u in User.objects.all()}


def words(browser: Browser) -> list[str]:
    """What the sign-in page says to a browser that was sent there."""
    answer = browser.get("/accounts/login/")
    return Page(answer).items.get("", [])


def test_a_first_sign_in_makes_an_account_without_rights(github: GitHubStandIn, browser: Browser) -> None:
    ada = github.people.add("ada")
    answer = browser.sign_in("ada", "/rejections/?page=2")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/rejections/?page=2")
    assert browser.name == "ada"
    assert people() == {"ada": (str(ada.id), "ada", set())}
    made = User.objects.get()
    assert (made.email, made.has_usable_password(), made.is_staff, made.is_superuser, made.is_demo) == (
        "ada@example.com",
        False,
        False,
        False,
        False,
    )


def test_the_session_begins_anew_and_nobody_reads_the_users_token_from_the_database(
    github: GitHubStandIn, browser: Browser
) -> None:
    github.people.add("ada")
    back = browser.from_github(browser.to_github(), "ada")
    before = browser.session_key
    browser.get(back)
    assert before != browser.session_key != ""
    assert not UserSession.objects.filter(session_key=before).exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT s::text FROM social_auth_usersocialauth s UNION SELECT u::text FROM accounts_user u")
        rows = "\n".join(row for (row,) in cursor.fetchall())
    sessions = [session.get_decoded() for session in UserSession.objects.all()]
    assert any("github_token" in data for data in sessions)
    assert "gho_" not in rows + str(sessions)


def test_a_rotated_secret_key_still_opens_a_users_token(rf: RequestFactory, settings: Any) -> None:
    request = rf.get("/")
    request.session = SessionStore()
    keep_token(request, "gho_demo")
    settings.SECRET_KEY, former = "a fresh key", settings.SECRET_KEY
    assert kept_token(request) == ""
    settings.SECRET_KEY_FALLBACKS = [former]
    assert kept_token(request) == "gho_demo"


def test_coming_again_is_the_same_account(github: GitHubStandIn, hub: Hub) -> None:
    ada = github.people.add("ada")
    for _ in range(2):
        Browser(hub).sign_in("ada")
    assert people() == {"ada": (str(ada.id), "ada", set())}


def test_a_renamed_user_keeps_the_account_and_the_freed_login_opens_another(github: GitHubStandIn, hub: Hub) -> None:
    ada = github.people.add("ada")
    Browser(hub).sign_in("ada")
    call_command("grant", "ada", "maintainer")
    github.people.rename("ada", "ada-l")
    squatter = github.people.add("ada")
    Browser(hub).sign_in("ada")
    assert people() == {
        "ada": (str(ada.id), "", {Role.MAINTAINER}),  # has not been here since: the login is no longer theirs
        "ada-2": (str(squatter.id), "ada", set()),
    }
    browser = Browser(hub)
    browser.sign_in("ada-l")
    assert browser.name == "ada-l"
    assert people() == {
        "ada-l": (str(ada.id), "ada-l", {Role.MAINTAINER}),
        "ada-2": (str(squatter.id), "ada", set()),
    }


def test_a_local_account_of_the_same_name_or_address_is_not_taken_over(github: GitHubStandIn, hub: Hub) -> None:
    user(Role.ADMIN, username="Ada", email="ada@example.com")
    ada = github.people.add("ada")
    browser = Browser(hub)
    browser.sign_in("ada")
    assert browser.name == "ada-2"
    assert people() == {"Ada": ("", "", {Role.ADMIN}), "ada-2": (str(ada.id), "ada", set())}


def test_who_is_signed_in_already_is_not_linked_but_changed(github: GitHubStandIn, browser: Browser) -> None:
    github.people.add("ada")
    user(Role.ADMIN, username="root")
    browser.post("/accounts/login/", {"username": "root", "password": "password"})
    assert browser.name == "root"
    browser.sign_in("ada")
    assert browser.name == "ada"
    assert {name: roles for name, (_, _, roles) in people().items()} == {"root": {Role.ADMIN}, "ada": set()}


# --- the demo ---------------------------------------------------------------------------------------------------


def test_no_account_of_the_demo_is_reached_through_github(github: GitHubStandIn, hub: Hub, settings: Any) -> None:
    settings.DEMO = True
    Installation.objects.update(kind=Kind.DEMO)
    call_command("seed_demo")
    github.people.add("demo-admin")
    browser = Browser(hub)
    browser.sign_in("demo-admin")
    assert browser.name == "demo-admin-2"
    found = User.objects.get(username="demo-admin-2")
    assert (found.is_demo, found.roles) == (True, set())
    assert not UserSocialAuth.objects.exclude(user=found).exists()


def test_who_came_through_the_demos_stand_in_is_gone_with_the_demo(
    github: GitHubStandIn, hub: Hub, settings: Any
) -> None:
    settings.DEMO = True
    browser = Browser(hub)
    browser.sign_in("demo-newcomer")
    assert browser.name == "demo-newcomer"
    settings.DEMO = False
    assert browser.name == ""
    assert browser.sign_in("demo-newcomer").headers["Location"] == "/accounts/login/"
    assert words(browser) == ["■ This account is switched off: ask an admin of the hub."]
    assert browser.name == ""


# --- what must not work -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "javascript:alert(1)",
        "http:///evil.example/",
        "",
    ],
)
def test_signing_in_never_leads_to_another_site(github: GitHubStandIn, browser: Browser, target: str) -> None:
    github.people.add("ada")
    back = browser.from_github(browser.to_github(target), "ada")
    answer = browser.get(f"{back}&{urlencode({'next': target})}")
    assert (answer.headers["Location"], browser.name) == ("/", "ada")


NO_ANSWER = "■ GitHub did not answer as expected. Try again in a few minutes; if it stays, tell the hub's operators."
NOT_BEGUN = "■ This sign-in was not begun in this browser, or too long ago. Begin again."


@pytest.mark.parametrize("change", [{"state": "x" * 32}, {"state": ""}, {"code": ""}])
def test_an_answer_that_was_tampered_with_signs_nobody_in(
    github: GitHubStandIn, browser: Browser, change: dict[str, str]
) -> None:
    github.people.add("ada")
    back = urlsplit(browser.from_github(browser.to_github(), "ada"))
    query = dict(parse_qsl(back.query)) | change
    answer = browser.get(f"{CALLBACK}?{urlencode(query)}")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/accounts/login/")
    assert (browser.name, User.objects.exists()) == ("", False)


def test_an_answer_serves_the_browser_that_asked_for_it_and_once(github: GitHubStandIn, hub: Hub) -> None:
    github.people.add("eve")
    eve, victim = Browser(hub), Browser(hub)
    back = eve.from_github(eve.to_github(), "eve")
    victim.to_github()  # has a sign-in of its own under way
    victim.get(back)
    assert (words(victim), victim.name) == ([NOT_BEGUN], "")
    eve.get(back)
    assert eve.name == "eve"
    eve.post("/accounts/logout/")
    eve.get(back)
    assert eve.name == ""


def test_the_way_to_github_carries_state_and_a_pkce_challenge(github: GitHubStandIn, browser: Browser) -> None:
    query = parse_qs(urlsplit(browser.to_github()).query)
    assert {name: query[name] for name in ("client_id", "code_challenge_method", "scope")} == {
        "client_id": [github.oauth.client_id],
        "code_challenge_method": ["S256"],
        "scope": ["user:email"],
    }
    assert [len(query[name][0]) for name in ("state", "code_challenge")] == [32, 43]
    assert query["redirect_uri"][0].endswith(CALLBACK)


def test_it_begins_with_a_form_of_this_hub(github: GitHubStandIn, hub: Hub) -> None:
    assert requests.get(f"{hub.url}/accounts/github/", timeout=20).status_code == 405
    assert requests.post(f"{hub.url}/accounts/github/", timeout=20).status_code == 403


def test_whoever_says_no_at_github_is_told_so(github: GitHubStandIn, browser: Browser) -> None:
    address = browser.to_github()
    browser.get(browser.get(f"{address}&deny=1").headers["Location"])
    assert words(browser) == ["■ GitHub was told no, so you are not signed in."]
    assert (browser.name, User.objects.exists()) == ("", False)


@pytest.mark.parametrize("path", [r"/access_token$", r"/user$"])
@pytest.mark.parametrize("status", [0, 502])
def test_a_github_that_does_not_answer_signs_nobody_in(
    github: GitHubStandIn, browser: Browser, path: str, status: int
) -> None:
    github.people.add("ada")
    back = browser.from_github(browser.to_github(), "ada")
    github.fail(path, status)
    browser.get(back)
    assert words(browser) == [NO_ANSWER]
    assert (browser.name, User.objects.exists()) == ("", False)


def test_a_wrong_client_secret_is_the_operators_to_mend(github: GitHubStandIn, hub: Hub, settings: Any) -> None:
    github.people.add("ada")
    settings.SOCIAL_AUTH_GITHUB_SECRET = "wrong"
    browser = Browser(hub)
    browser.sign_in("ada")
    assert words(browser) == [NO_ANSWER]
    assert browser.name == ""


def test_two_first_sign_ins_at_once_make_one_account(cloned_database: Any) -> None:
    start = threading.Barrier(4)

    def sign_in() -> int:
        try:
            start.wait(20)
            return account_of_github(identity=UserIdentity("ada", 4711), now=now()).pk
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        found = [done.result() for done in [pool.submit(sign_in) for _ in range(4)]]
    assert len(set(found)) == 1
    assert people() == {"ada": ("4711", "ada", set())}


def test_without_a_proved_address_one_signs_in_all_the_same(github: GitHubStandIn, browser: Browser) -> None:
    github.people.add("ada")
    github.fail(r"/user/emails$", 403)
    browser.sign_in("ada")
    assert (browser.name, User.objects.get().email) == ("ada", "")


def test_an_account_that_is_switched_off_stays_out(github: GitHubStandIn, hub: Hub) -> None:
    github.people.add("ada")
    Browser(hub).sign_in("ada")
    User.objects.update(is_active=False)
    browser = Browser(hub)
    browser.sign_in("ada")
    assert words(browser) == ["■ This account is switched off: ask an admin of the hub."]
    assert browser.name == ""


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["SOCIAL_AUTH_GITHUB_KEY", "SOCIAL_AUTH_GITHUB_SECRET"])
def test_where_github_is_not_set_up_it_is_not_offered(client: Any, settings: Any, name: str) -> None:
    settings.SOCIAL_AUTH_GITHUB_KEY = settings.SOCIAL_AUTH_GITHUB_SECRET = "given"
    assert "Sign in with GitHub" in Page(client.get("/accounts/login/")).text
    assert client.post("/accounts/github/").status_code == 302
    setattr(settings, name, "")
    assert "GitHub" not in Page(client.get("/accounts/login/")).text
    assert [client.post("/accounts/github/").status_code, client.get(CALLBACK).status_code] == [404, 404]
