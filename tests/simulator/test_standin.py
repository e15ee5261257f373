"""The stand-in answers the hub's own client, PyJWT's JWKS client and plain HTTP as GitHub would."""

import contextlib
import http.client
import threading
import time
from collections.abc import Callable
from pathlib import Path

import jwt
import pytest
import requests

from apps.core.github import GitHubClient, GitHubRefused, GitHubUnavailable
from apps.simulator.oidc import kept_key, new_key
from apps.simulator.standin import Dispatch, GitHubStandIn
from tests.simulator.tiny_hub import APP_ID, AUDIENCE, eventually

REPO = "fen-demo/torch-fen"


def app_jwt(key: str, *, iss: str | int = APP_ID, seconds: int = 300) -> str:
    now = int(time.time())
    return jwt.encode({"iat": now - 60, "exp": now + seconds, "iss": str(iss)}, key, algorithm="RS256")


def installation_token(github: GitHubStandIn, key: str, installation_id: int, **wish: object) -> requests.Response:
    return requests.post(
        f"{github.url}/app/installations/{installation_id}/access_tokens",
        json=wish,
        headers={"Authorization": f"Bearer {app_jwt(key)}"},
        timeout=5,
    )


def dispatch(github: GitHubStandIn, token: str, body: object, repo: str = REPO) -> requests.Response:
    headers = {"Authorization": f"token {token}"} if token else {}
    return requests.post(f"{github.url}/repos/{repo}/dispatches", json=body, headers=headers, timeout=5)


def a_token(github: GitHubStandIn, key: str, repo: str = REPO) -> str:
    return str(installation_token(github, key, github.add_repository(repo).installation_id).json()["token"])


# --- the hub's client -------------------------------------------------------------------------------------------


def test_identity_through_the_hubs_client(github: GitHubStandIn, client: GitHubClient) -> None:
    ids = github.add_repository(REPO)
    found = client.repository_identity(REPO.upper())
    assert (found.full_name, found.github_id, found.github_owner_id) == (REPO, ids.repository_id, ids.owner_id)


def test_dispatch_through_the_hubs_client_reaches_on_dispatch_in_order(
    github: GitHubStandIn, client: GitHubClient
) -> None:
    github.add_repository(REPO)
    seen: list[tuple[str, dict]] = []
    github.on_dispatch = lambda d: seen.append((d.repository, d.client_payload))
    for number in range(5):
        client.send_dispatch(REPO, event_type="push", client_payload={"n": number})
    eventually(lambda: len(seen) == 5)
    assert seen == [(REPO, {"n": number}) for number in range(5)]
    assert [r.status for r in github.requests if r.path.endswith("/dispatches")] == [204] * 5
    assert github.dispatches[0].event_type == "push"


def test_the_hubs_client_hears_that_a_dispatch_was_refused_or_lost(github: GitHubStandIn, client: GitHubClient) -> None:
    github.add_repository(REPO)
    with pytest.raises(GitHubRefused) as refused:
        client.send_dispatch(REPO, event_type="push", client_payload={str(n): n for n in range(11)})
    assert refused.value.status == 422
    github.fail(r"/dispatches$", 502)
    with pytest.raises(GitHubUnavailable):
        client.send_dispatch(REPO, event_type="push", client_payload={})
    assert github.dispatches == []


def test_the_hubs_client_asks_for_a_token_once(github: GitHubStandIn, client: GitHubClient) -> None:
    github.add_repository(REPO)
    for _ in range(3):
        client.send_dispatch(REPO, event_type="push", client_payload={})
    assert sum(r.path.endswith("/access_tokens") for r in github.requests) == 1


def test_an_installation_token_outlives_a_restart(github: GitHubStandIn, client: GitHubClient) -> None:
    github.add_repository(REPO)
    client.repository_identity(REPO)
    port = github.port
    github.stop()
    with pytest.raises(GitHubUnavailable):
        client.repository_identity(REPO)
    github.start()
    assert github.port == port
    assert client.repository_identity(REPO).full_name == REPO


def test_wrong_app_key_is_401(github: GitHubStandIn) -> None:
    github.add_repository(REPO)
    stranger = GitHubClient(api_url=github.url, app_id=APP_ID, private_key=new_key())
    with pytest.raises(GitHubUnavailable, match=r"^GitHub answered 401: "):
        stranger.repository_identity(REPO)


@pytest.mark.parametrize("installed", [False, None])
def test_unknown_and_not_installed_are_404(github: GitHubStandIn, client: GitHubClient, installed: bool | None) -> None:
    if installed is not None:
        github.add_repository(REPO, installed=installed)
    with pytest.raises(GitHubRefused) as refused:
        client.send_dispatch(REPO, event_type="push", client_payload={})
    assert refused.value.status == 404


@pytest.mark.parametrize("status", [0, 502, 429])
def test_made_to_fail_it_fails_so_many_times(github: GitHubStandIn, client: GitHubClient, status: int) -> None:
    github.add_repository(REPO)
    github.fail(r"/installation$", status, times=2)
    for _ in range(2):
        with pytest.raises(GitHubUnavailable):
            client.repository_identity(REPO)
    assert client.repository_identity(REPO).full_name == REPO
    assert [r.status for r in github.requests][:2] == [status, status]


def test_healing_forgets_failures(github: GitHubStandIn) -> None:
    github.fail("", 500, times=100)
    github.heal()
    assert requests.get(f"{github.url}/.well-known/jwks", timeout=5).status_code == 200


# --- the App API ------------------------------------------------------------------------------------------------


def test_app_and_installation_shapes(github: GitHubStandIn, app_key: str) -> None:
    ids = github.add_repository(REPO)
    auth = {"Authorization": f"Bearer {app_jwt(app_key)}"}
    assert requests.get(f"{github.url}/app", headers=auth, timeout=5).json()["id"] == int(APP_ID)
    answer = requests.get(f"{github.url}/repos/{REPO}/installation", headers=auth, timeout=5).json()
    assert answer["id"] == ids.installation_id
    assert answer["account"]["login"] == "fen-demo"
    token = installation_token(github, app_key, ids.installation_id)
    assert token.status_code == 201
    assert token.json()["token"].startswith("ghs_")
    assert token.json()["expires_at"].endswith("Z")


@pytest.mark.parametrize(
    "make",
    [
        lambda key: "",
        lambda key: "no.jwt.atall",
        lambda key: app_jwt(key, iss="7"),
        lambda key: app_jwt(key, seconds=-120),
        lambda key: app_jwt(key, seconds=3600),
        lambda key: jwt.encode({"iss": APP_ID}, key, algorithm="RS256"),
        lambda key: jwt.encode({"iss": APP_ID, "iat": 1, "exp": 9_999_999_999}, "x" * 32, algorithm="HS256"),
    ],
    ids=["none", "garbage", "other app", "expired", "too long", "no times", "symmetric"],
)
def test_app_jwt_refused(github: GitHubStandIn, app_key: str, make: Callable[[str], str]) -> None:
    ids = github.add_repository(REPO)
    headers = {"Authorization": f"Bearer {make(app_key)}"}
    for method, path in (
        ("GET", "/app"),
        ("GET", f"/repos/{REPO}/installation"),
        ("POST", f"/app/installations/{ids.installation_id}/access_tokens"),
    ):
        answer = requests.request(method, github.url + path, headers=headers, timeout=5)
        assert answer.status_code == 401
        assert set(answer.json()) == {"message", "documentation_url", "status"}
        assert answer.json()["status"] == "401"


def test_token_requests_beyond_the_installation_are_refused(github: GitHubStandIn, app_key: str) -> None:
    ids = github.add_repository(REPO)
    assert installation_token(github, app_key, 4).status_code == 404
    assert installation_token(github, app_key, ids.installation_id, repositories=["other"]).status_code == 422
    for permissions in ({"contents": "admin"}, {"secrets": "read"}):
        answer = installation_token(github, app_key, ids.installation_id, permissions=permissions)
        assert answer.status_code == 422


def test_a_token_narrowed_to_reading_or_to_a_sibling_cannot_dispatch(github: GitHubStandIn, app_key: str) -> None:
    ids = github.add_repository(REPO)
    github.add_repository("fen-demo/docs")
    reading = installation_token(github, app_key, ids.installation_id, permissions={"contents": "read"})
    sibling = installation_token(github, app_key, ids.installation_id, repositories=["docs"])
    narrow = installation_token(github, app_key, ids.installation_id, repository_ids=[ids.repository_id])
    for token, status in ((reading, 403), (sibling, 403), (narrow, 204)):
        assert dispatch(github, token.json()["token"], {"event_type": "push"}).status_code == status


def test_dispatch_needs_this_repositorys_token(github: GitHubStandIn, app_key: str) -> None:
    github.add_repository(REPO)
    github.add_repository("pallas-demo/secret", private=True)
    other = a_token(github, app_key, "kestrel-demo/torch-kestrel")
    body = {"event_type": "push", "client_payload": {}}
    assert dispatch(github, other, body).status_code == 403
    assert dispatch(github, other, body).json()["message"] == "Resource not accessible by integration"
    assert dispatch(github, other, body, "pallas-demo/secret").status_code == 404
    assert dispatch(github, "", body).status_code == 401
    assert dispatch(github, "ghs_forged", body).json()["message"] == "Bad credentials"
    assert dispatch(github, app_jwt(app_key), body).status_code == 401
    assert github.dispatches == []


LIMIT = {"delivery": "x" * (65_535 - len('{"delivery":""}'))}


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"event_type": "push"}, 204, ""),
        ({"event_type": "push", "client_payload": {str(n): n for n in range(10)}}, 204, ""),
        ({"event_type": "push", "client_payload": {str(n): n for n in range(11)}}, 422, "No more than 10 properties"),
        ({"event_type": "push", "client_payload": LIMIT}, 204, ""),
        ({"event_type": "push", "client_payload": LIMIT | {"a": 1}}, 422, "client_payload is too large"),
        ({"event_type": "push", "client_payload": [1]}, 422, "not an object"),
        ({"client_payload": {}}, 422, '"event_type" wasn\'t supplied'),
        ({"event_type": "x" * 101}, 422, "100 characters"),
        ({"event_type": ""}, 422, "100 characters"),
        ([], 422, "not an object"),
    ],
)
def test_dispatch_bodies(github: GitHubStandIn, app_key: str, body: object, status: int, message: str) -> None:
    answer = dispatch(github, a_token(github, app_key), body)
    assert answer.status_code == status
    assert len(github.dispatches) == (status == 204)
    if status == 422:
        assert message in answer.json()["message"]
        assert answer.json()["documentation_url"].startswith("https://docs.github.com/")


def test_body_that_is_no_json_is_400(github: GitHubStandIn, app_key: str) -> None:
    headers = {"Authorization": f"Bearer {a_token(github, app_key)}"}
    url = f"{github.url}/repos/{REPO}/dispatches"
    for data in (b"{", b"[" * 200_000, b"\xff"):
        assert requests.post(url, data=data, headers=headers, timeout=5).status_code == 400
    chunked = requests.post(url, data=iter([b"{}"]), headers=headers, timeout=5)
    assert chunked.status_code == 411
    assert requests.post(url, data=b" " * 1_100_000, headers=headers, timeout=5).status_code == 413


# --- repositories -----------------------------------------------------------------------------------------------


def test_repository_shape_for_anyone_and_private_for_its_installation(github: GitHubStandIn, app_key: str) -> None:
    ids = github.add_repository(REPO)
    anyone = requests.get(f"{github.url}/repos/{REPO}", timeout=5).json()
    assert (anyone["id"], anyone["full_name"], anyone["private"]) == (ids.repository_id, REPO, False)
    assert (anyone["owner"]["login"], anyone["owner"]["id"]) == ("fen-demo", ids.owner_id)
    github.add_repository(REPO, private=True)
    assert requests.get(f"{github.url}/repos/{REPO}", timeout=5).status_code == 404
    auth = {"Authorization": f"Bearer {installation_token(github, app_key, ids.installation_id).json()['token']}"}
    assert requests.get(f"{github.url}/repos/{REPO}", headers=auth, timeout=5).json()["private"] is True
    assert requests.get(f"{github.url}/repos/no/body", timeout=5).json() == {
        "message": "Not Found",
        "documentation_url": "https://docs.github.com/rest",
        "status": "404",
    }


def test_a_renamed_repository_keeps_its_ids_and_its_old_name_redirects(
    github: GitHubStandIn, client: GitHubClient, app_key: str
) -> None:
    before = github.add_repository(REPO)
    token = a_token(github, app_key)
    assert github.rename_repository(REPO, "fen-demo/fen") == before
    found = client.repository_identity(REPO)
    assert (found.full_name, found.github_id) == ("fen-demo/fen", before.repository_id)
    moved = requests.post(
        f"{github.url}/repos/{REPO}/dispatches",
        json={"event_type": "push"},
        headers={"Authorization": f"Bearer {token}"},
        allow_redirects=False,
        timeout=5,
    )
    assert moved.status_code == 307
    again = requests.post(
        moved.headers["Location"], json={"event_type": "push"}, headers={"Authorization": f"Bearer {token}"}, timeout=5
    )
    assert again.status_code == 204
    assert github.dispatches[0].repository == "fen-demo/fen"


def test_the_hubs_client_takes_no_redirect_for_an_accepted_dispatch(
    github: GitHubStandIn, client: GitHubClient
) -> None:
    github.add_repository(REPO)
    github.rename_repository(REPO, "fen-demo/fen")
    try:
        client.send_dispatch(REPO, event_type="push", client_payload={})
    except GitHubRefused:
        return
    assert [d.repository for d in github.dispatches] == ["fen-demo/fen"]


def test_another_repository_under_a_freed_name_has_other_ids(github: GitHubStandIn, client: GitHubClient) -> None:
    before = github.add_repository(REPO)
    github.rename_repository(REPO, "fen-demo/fen")
    after = github.add_repository(REPO)
    assert after.repository_id != before.repository_id
    assert client.repository_identity(REPO).github_id == after.repository_id


def test_a_replaced_repository_is_somebody_elses(github: GitHubStandIn, client: GitHubClient) -> None:
    before = github.add_repository(REPO)
    client.send_dispatch(REPO, event_type="push", client_payload={})
    after = github.replace_repository(REPO)
    assert {*before} & {*after} == set()
    claims = jwt.decode(github.mint_token(REPO, audience=AUDIENCE, run_id=1), options={"verify_signature": False})
    assert claims["repository"] == REPO
    assert claims["repository_id"] == str(after.repository_id)
    with pytest.raises(KeyError):
        github.replace_repository("no/body")


def test_a_transfer_changes_the_owner_only(github: GitHubStandIn) -> None:
    before = github.add_repository(REPO)
    after = github.rename_repository(REPO, "marsh-demo/torch-fen")
    assert after.repository_id == before.repository_id
    assert after.owner_id != before.owner_id


# --- the issuer -------------------------------------------------------------------------------------------------


def verified(github: GitHubStandIn, token: str) -> dict:
    issuer = requests.get(f"{github.url}/.well-known/openid-configuration", timeout=5).json()
    key = jwt.PyJWKClient(issuer["jwks_uri"]).get_signing_key_from_jwt(token)
    return jwt.decode(token, key, algorithms=["RS256"], audience=AUDIENCE, issuer=issuer["issuer"])


def test_minted_claims_are_those_of_github_actions(github: GitHubStandIn) -> None:
    ids = github.add_repository(REPO)
    claims = verified(github, github.mint_token(REPO, audience=AUDIENCE, run_id=123, run_attempt=2))
    expected = {
        "iss": github.url,
        "aud": AUDIENCE,
        "sub": f"repo:{REPO}:ref:refs/heads/main",
        "repository": REPO,
        "repository_id": str(ids.repository_id),
        "repository_owner": "fen-demo",
        "repository_owner_id": str(ids.owner_id),
        "run_id": "123",
        "run_attempt": "2",
        "ref": "refs/heads/main",
        "workflow": "CI",
        "workflow_ref": f"{REPO}/.github/workflows/ci.yml@refs/heads/main",
        "job_workflow_ref": f"{REPO}/.github/workflows/ci.yml@refs/heads/main",
        "event_name": "repository_dispatch",
    }
    assert {name: claims[name] for name in expected} == expected
    assert claims["exp"] - claims["iat"] == 300
    assert {"jti", "sha", "run_number", "actor", "actor_id", "nbf"} <= set(claims)
    assert all(isinstance(v, str) for k, v in claims.items() if k not in {"iat", "nbf", "exp"})


def test_overrides_replace_and_remove_claims(github: GitHubStandIn) -> None:
    github.add_repository(REPO)
    token = github.mint_token(REPO, audience=AUDIENCE, run_id="5", event_name="schedule", run_attempt="3", jti=None)
    claims = verified(github, token)
    assert (claims["event_name"], claims["run_attempt"]) == ("schedule", "3")
    assert "jti" not in claims
    with pytest.raises(KeyError):
        github.mint_token("no/body", audience=AUDIENCE, run_id=1)


def test_key_rotation_with_and_without_the_old_key(github: GitHubStandIn) -> None:
    github.add_repository(REPO)
    first = github.mint_token(REPO, audience=AUDIENCE, run_id=1)
    kid = github.rotate_keys()
    second = github.mint_token(REPO, audience=AUDIENCE, run_id=1)
    assert jwt.get_unverified_header(second)["kid"] == kid
    assert verified(github, first)["run_id"] == verified(github, second)["run_id"] == "1"
    github.rotate_keys(keep_old=False)
    for old in (first, second):
        with pytest.raises(jwt.PyJWKClientError):
            verified(github, old)


def test_actions_token_over_http(github: GitHubStandIn) -> None:
    github.add_repository(REPO)
    run = {"repository": REPO, "run_id": "77", "run_attempt": "2", "workflow": "Upstream CI"}
    made = requests.post(f"{github.url}/_standin/runs", json=run, timeout=5)
    assert made.status_code == 201
    url, auth = made.json()["token_url"], {"Authorization": f"bearer {made.json()['request_token']}"}
    claims = verified(github, requests.get(f"{url}&audience={AUDIENCE}", headers=auth, timeout=5).json()["value"])
    assert (claims["repository"], claims["run_id"], claims["run_attempt"]) == (REPO, "77", "2")
    assert claims["workflow_ref"] == f"{REPO}/.github/workflows/upstream-ci.yml@refs/heads/main"
    default = requests.get(url, headers=auth, timeout=5).json()["value"]
    assert jwt.decode(default, options={"verify_signature": False})["aud"] == "https://github.com/fen-demo"
    assert requests.get(url, timeout=5).status_code == 401
    assert requests.get(url, headers={"Authorization": "bearer x"}, timeout=5).status_code == 401


@pytest.mark.parametrize(
    ("run", "status"),
    [
        ({"repository": "no/body", "run_id": 1}, 404),
        ({"repository": REPO}, 422),
        ({"repository": REPO, "run_id": "abc"}, 422),
        ({"repository": REPO, "run_id": 1, "run_attempt": 0}, 422),
        ({"repository": REPO, "run_id": 1}, 201),
    ],
)
def test_runs_are_checked(github: GitHubStandIn, run: dict, status: int) -> None:
    github.add_repository(REPO)
    assert requests.post(f"{github.url}/_standin/runs", json=run, timeout=5).status_code == status


def test_dispatches_are_listed_per_repository(github: GitHubStandIn, client: GitHubClient) -> None:
    for repo in (REPO, "pallas-demo/torch-pallas"):
        github.add_repository(repo)
        client.send_dispatch(repo, event_type="push", client_payload={"delivery_id": repo})
    rows = requests.get(f"{github.url}/_standin/dispatches", params={"repository": REPO.title()}, timeout=5).json()
    assert [(d["number"], d["client_payload"]) for d in rows["dispatches"]] == [(1, {"delivery_id": REPO})]
    assert len(requests.get(f"{github.url}/_standin/dispatches", timeout=5).json()["dispatches"]) == 2


# --- manners ----------------------------------------------------------------------------------------------------


def test_unknown_routes_and_methods_are_404(github: GitHubStandIn) -> None:
    for method in ("GET", "PUT", "PATCH", "DELETE", "POST"):
        assert requests.request(method, f"{github.url}/nothing/here", timeout=5).status_code == 404


def test_a_browser_that_was_pointed_here_under_another_name_is_refused(github: GitHubStandIn) -> None:
    answer = requests.get(f"{github.url}/_standin/dispatches", headers={"Host": "evil.example"}, timeout=5)
    assert answer.status_code == 403


def test_connections_are_kept_and_closed_at_the_end(app_key: str, oidc_key: str) -> None:
    before = threading.active_count()
    github = GitHubStandIn(app_id=APP_ID, app_private_key=app_key, oidc_private_key=oidc_key).start()
    connection = http.client.HTTPConnection("127.0.0.1", github.port, timeout=5)
    for _ in range(2):
        connection.request("GET", "/.well-known/jwks")
        assert connection.getresponse().read()
    assert threading.active_count() > before
    begin = time.monotonic()
    github.stop()
    assert time.monotonic() - begin < 1
    eventually(lambda: threading.active_count() <= before)
    connection.close()


def test_delay_slows_answers_and_does_not_hold_up_the_end(github: GitHubStandIn) -> None:
    github.delay_seconds = 0.2
    begin = time.monotonic()
    requests.get(f"{github.url}/.well-known/jwks", timeout=5)
    assert time.monotonic() - begin >= 0.2
    github.delay_seconds = 30

    def ask() -> None:
        with contextlib.suppress(requests.ConnectionError):  # its end may come before the answer
            requests.get(f"{github.url}/app", timeout=20)

    waiting = threading.Thread(target=ask)
    waiting.start()
    time.sleep(0.1)
    begin = time.monotonic()
    github.stop()
    assert time.monotonic() - begin < 1.5
    waiting.join(5)
    assert not waiting.is_alive()


def test_a_failing_listener_does_not_stop_the_next_call(github: GitHubStandIn, client: GitHubClient) -> None:
    github.add_repository(REPO)
    calls: list[int] = []

    def listener(dispatch: Dispatch) -> None:
        calls.append(dispatch.number)
        raise ValueError("made up")

    github.on_dispatch = listener
    for _ in range(2):
        client.send_dispatch(REPO, event_type="push", client_payload={})
    eventually(lambda: calls == [1, 2])


def test_url_needs_a_port(app_key: str, oidc_key: str) -> None:
    github = GitHubStandIn(app_id=APP_ID, app_private_key=app_key, oidc_private_key=oidc_key)
    with pytest.raises(RuntimeError):
        _ = github.url


def test_the_kept_key_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    assert kept_key(path) == kept_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["key.pem"]


def test_its_buildkite_is_another_issuer_with_claims_of_its_own(github: GitHubStandIn) -> None:
    """Against what the agent's documentation lists: https://buildkite.com/docs/agent/cli/reference/oidc."""
    github.add_repository(REPO)
    run = {"repository": REPO, "run_id": "77", "workflow": "test-ops", "ci": "buildkite"}
    made = requests.post(f"{github.url}/_standin/runs", json=run, timeout=10).json()
    headers = {"Authorization": f"bearer {made['request_token']}"}
    answer = requests.get(f"{made['token_url']}&audience=hub", headers=headers, timeout=10).json()
    issuer = f"{github.url}/buildkite"
    key = jwt.PyJWKClient(f"{issuer}/.well-known/jwks").get_signing_key_from_jwt(answer["value"])
    claims = jwt.decode(answer["value"], key, algorithms=["RS256"], audience="hub", issuer=issuer)
    owner, name = REPO.split("/")
    commit = claims["build_commit"]
    assert {word: claims[word] for word in ("organization_slug", "pipeline_slug", "build_number", "sub")} == {
        "organization_slug": owner,
        "pipeline_slug": name,
        "build_number": 77,
        "sub": f"organization:{owner}:pipeline:{name}:ref:refs/heads/main:commit:{commit}:step:test-ops",
    }
    assert claims["exp"] - claims["iat"] == 300
