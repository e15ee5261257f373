"""The stand-in's people: GitHub's web flow, and what a user's token is told."""

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
import requests

from apps.simulator.oauth import challenge_of
from apps.simulator.people import MAINTAINERS, PEOPLE
from apps.simulator.standin import GitHubStandIn

BACK = "http://127.0.0.1:9/callback/"
VERIFIER = "v" * 43
REPO = "fen-demo/torch-fen"


def authorize(github: GitHubStandIn, **query: str) -> requests.Response:
    given = {"client_id": github.oauth.client_id, "redirect_uri": BACK, "state": "s-1", "scope": "user:email,read:org"}
    url = f"{github.url}/login/oauth/authorize?{urlencode({k: v for k, v in (given | query).items() if v})}"
    return requests.get(url, allow_redirects=False, timeout=5)


def landed(answer: requests.Response) -> dict[str, str]:
    """What the browser brings back."""
    assert answer.status_code == 302
    assert answer.headers["Location"].partition("?")[0] == BACK
    return dict(parse_qsl(urlsplit(answer.headers["Location"]).query))


def exchange(github: GitHubStandIn, code: str, **form: str) -> dict[str, Any]:
    given = {"client_id": github.oauth.client_id, "client_secret": github.oauth.client_secret, "code": code}
    answer = requests.post(
        f"{github.url}/login/oauth/access_token",
        given | {"redirect_uri": BACK} | form,
        headers={"Accept": "application/json"},
        timeout=5,
    )
    assert answer.status_code == 200
    return dict(answer.json())


def code_for(github: GitHubStandIn, login: str = "demo-mika", **query: str) -> str:
    return landed(authorize(github, login=login, **query))["code"]


def token_for(github: GitHubStandIn, login: str, **query: str) -> str:
    return str(exchange(github, code_for(github, login, **query))["access_token"])


def ask(github: GitHubStandIn, path: str, token: str = "") -> requests.Response:
    headers = {"Authorization": f"token {token}"} if token else {}
    return requests.get(github.url + path, headers=headers, timeout=5)


# --- the web flow -----------------------------------------------------------------------------------------------


def test_without_a_login_a_page_offers_everyone(github: GitHubStandIn) -> None:
    answer = authorize(github)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert [person.login for person in PEOPLE if f">{person.login}</a>" in answer.text] == [p.login for p in PEOPLE]
    assert authorize(github, login="nobody").text.count("<li>") == len(PEOPLE)


def test_the_page_repeats_what_it_was_given_as_text(github: GitHubStandIn) -> None:
    assert "<script>" not in authorize(github, state='"><script>alert(1)</script>').text


def test_a_login_comes_back_with_a_code_for_one_token(github: GitHubStandIn) -> None:
    back = landed(authorize(github, login="DEMO-Mika"))
    assert (back["state"], set(back)) == ("s-1", {"state", "code"})
    first, second = exchange(github, back["code"]), exchange(github, back["code"])
    assert first.pop("access_token").startswith("gho_")
    assert first == {"scope": "user:email,read:org", "token_type": "bearer"}
    assert second["error"] == "bad_verification_code"


def test_a_refusal_by_the_user_comes_back_as_one(github: GitHubStandIn) -> None:
    back = landed(authorize(github, deny="1"))
    assert (back["error"], back["state"], "code" in back) == ("access_denied", "s-1", False)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"client_id": "other"}, 404),
        ({"client_id": ""}, 404),
        ({"redirect_uri": "https://evil.example/"}, 400),
        ({"redirect_uri": ""}, 400),
        ({"redirect_uri": "http://127.0.0.1:9/accounts/github/callback/\r\nSet-Cookie: a=b"}, 400),
        ({"redirect_uri": "http://evil.example\\@127.0.0.1/accounts/github/callback/"}, 400),
        ({"redirect_uri": "http://a@127.0.0.1/accounts/github/callback/"}, 400),
        ({"redirect_uri": "http://[127.0.0.1"}, 400),
        ({"code_challenge": "x", "code_challenge_method": "plain"}, 400),
    ],
)
def test_what_it_does_not_know_is_not_sent_on(github: GitHubStandIn, query: dict[str, str], status: int) -> None:
    assert authorize(github, login="demo-mika", **query).status_code == status


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({"client_secret": "wrong"}, "incorrect_client_credentials"),
        ({"client_id": "wrong"}, "incorrect_client_credentials"),
        ({"code": "wrong"}, "bad_verification_code"),
        ({"redirect_uri": "http://127.0.0.1:9/other/"}, "redirect_uri_mismatch"),
        ({"code_verifier": "w" * 43}, "bad_verification_code"),
        ({"code_verifier": ""}, "bad_verification_code"),
        ({"code_verifier": VERIFIER}, None),
    ],
)
def test_a_code_is_exchanged_by_the_client_with_its_verifier(
    github: GitHubStandIn, form: dict[str, str], error: str | None
) -> None:
    code = code_for(github, code_challenge=challenge_of(VERIFIER), code_challenge_method="S256")
    assert exchange(github, **({"code": code} | {"code_verifier": VERIFIER} | form)).get("error") == error


def test_the_challenge_is_the_one_of_the_standard() -> None:
    # RFC 7636, appendix B
    assert challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_a_client_that_does_not_ask_for_json_gets_a_form(github: GitHubStandIn) -> None:
    form = {"client_id": github.oauth.client_id, "client_secret": github.oauth.client_secret, "code": code_for(github)}
    answer = requests.post(f"{github.url}/login/oauth/access_token", form, timeout=5)
    assert dict(parse_qsl(answer.text))["token_type"] == "bearer"


# --- with a user's token ----------------------------------------------------------------------------------------


def test_a_token_says_who_its_user_is(github: GitHubStandIn) -> None:
    mika = PEOPLE[0]
    answer = ask(github, "/user", token_for(github, mika.login)).json()
    assert {key: answer[key] for key in ("login", "id", "type", "email")} == {
        "login": mika.login,
        "id": mika.id,
        "type": "User",
        "email": None,
    }
    assert ask(github, f"/users/{mika.login.upper()}").json()["id"] == mika.id
    assert ask(github, "/users/nobody").status_code == 404


@pytest.mark.parametrize("token", ["", "gho_forged", "ghs_forged"])
def test_another_credential_is_nobodys(github: GitHubStandIn, token: str) -> None:
    assert ask(github, "/user", token).status_code == 401


def test_addresses_are_told_with_the_scope_only(github: GitHubStandIn) -> None:
    rows = ask(github, "/user/emails", token_for(github, "demo-mika")).json()
    assert [(row["email"], row["primary"], row["verified"]) for row in rows] == [
        ("old-demo-mika@example.com", False, False),
        ("demo-mika@example.com", True, True),
    ]
    assert ask(github, "/user/emails", token_for(github, "demo-mika", scope="read:org")).status_code == 404


def test_a_membership_is_told_to_who_sees_the_team(github: GitHubStandIn) -> None:
    organisation, team = MAINTAINERS.split("/")
    path = f"/orgs/{organisation}/teams/{team}/memberships/"
    token = token_for(github, "demo-mika")
    assert ask(github, f"{path}demo-mika", token).json()["state"] == "active"
    assert ask(github, f"{path}demo-newcomer", token).status_code == 404
    assert ask(github, f"{path}demo-mika", token_for(github, "demo-newcomer")).status_code == 404
    assert ask(github, f"{path}demo-mika", token_for(github, "demo-mika", scope="user:email")).status_code == 404
    assert ask(github, f"{path}demo-mika").status_code == 401
    github.people.put_in_teams("demo-mika", set(), pending={MAINTAINERS})
    assert ask(github, f"{path}demo-mika", token).json()["state"] == "pending"


def test_a_repository_says_what_the_tokens_user_may_do(github: GitHubStandIn) -> None:
    repository_id = github.add_repository("pallas-demo/torch-pallas").repository_id
    path = "/repos/pallas-demo/torch-pallas"

    def may_push(login: str) -> bool:
        return bool(ask(github, path, token_for(github, login)).json()["permissions"]["push"])

    assert (may_push("demo-pallas-dev"), may_push("demo-newcomer")) == (True, False)
    assert "permissions" not in ask(github, path).json()
    github.people.allow_push("demo-newcomer", repository_id)
    github.rename_repository("pallas-demo/torch-pallas", "pallas-demo/pallas")
    assert may_push("demo-newcomer")  # the right is the repository's, not its name's


def test_a_renamed_user_keeps_the_id_and_frees_the_login(github: GitHubStandIn) -> None:
    token = token_for(github, "demo-mika")
    github.people.rename("demo-mika", "demo-micha")
    newcomer = github.people.add("demo-mika")
    assert ask(github, "/user", token).json()["login"] == "demo-micha"
    assert ask(github, "/users/demo-mika").json()["id"] == newcomer.id != PEOPLE[0].id
    github.people.remove("demo-micha")
    assert ask(github, "/user", token).status_code == 401


def test_a_users_token_dispatches_nothing(github: GitHubStandIn) -> None:
    ids = github.add_repository(REPO)
    github.people.allow_push("demo-newcomer", ids.repository_id)
    headers = {"Authorization": f"Bearer {token_for(github, 'demo-newcomer')}"}
    url = f"{github.url}/repos/{REPO}/dispatches"
    assert requests.post(url, json={"event_type": "push"}, headers=headers, timeout=5).status_code == 401
    assert github.dispatches == []


@pytest.mark.parametrize("act", ["rename", "allow_push", "remove"])
def test_a_knob_for_nobody_is_an_error(github: GitHubStandIn, act: str) -> None:
    knobs = {
        "rename": lambda: github.people.rename("nobody", "else"),
        "allow_push": lambda: github.people.allow_push("nobody"),
        "remove": lambda: github.people.remove("nobody"),
    }
    with pytest.raises(KeyError):
        knobs[act]()


def test_every_login_says_that_it_is_a_demos() -> None:
    assert [person.login for person in PEOPLE if not person.login.startswith("demo-")] == []
