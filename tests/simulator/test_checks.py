"""The stand-in's check runs, pull requests and re-runs, asked with the hub's own client."""

from typing import Any

import pytest
import requests

from apps.core.github import GitHubClient, GitHubRefused
from apps.simulator.standin import GitHubStandIn
from tests.simulator.test_standin import a_token, installation_token

REPO, SHA = "fen-demo/torch-fen", "ab" * 20


@pytest.fixture(autouse=True)
def repository(github: GitHubStandIn) -> None:
    github.add_repository(REPO)


def wish(**fields: Any) -> dict[str, Any]:
    return {"name": "CI / build", "head_sha": SHA, "status": "in_progress"} | fields


def refusal(client: GitHubClient, **fields: Any) -> int:
    with pytest.raises(GitHubRefused) as refused:
        client.create_check_run(REPO, wish(**fields))
    return refused.value.status


def test_a_check_run_is_made_and_changed(github: GitHubStandIn, client: GitHubClient) -> None:
    number = client.create_check_run(REPO, wish(external_id="7:1", output={"title": "Running", "summary": "…"}))
    client.update_check_run(REPO, number, {"conclusion": "failure"})
    (run,) = github.check_runs
    assert {key: run[key] for key in ("id", "name", "head_sha", "status", "conclusion", "external_id", "output")} == {
        "id": number,
        "name": "CI / build",
        "head_sha": SHA,
        "status": "completed",
        "conclusion": "failure",
        "external_id": "7:1",
        "output": {"title": "Running", "summary": "…"},
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "x" * 256},
        {"head_sha": "main"},
        {"status": "running"},
        {"status": "completed"},
        {"conclusion": "green"},
        {"output": {"title": "x" * 256, "summary": ""}},
        {"output": {"title": "", "summary": "x" * 65_536}},
    ],
)
def test_what_github_would_not_take_is_refused(github: GitHubStandIn, client: GitHubClient, fields: Any) -> None:
    assert refusal(client, **fields) == 422
    assert github.check_runs == []


def test_those_of_a_name_at_a_commit_newest_first(client: GitHubClient) -> None:
    made = [client.create_check_run(REPO, wish(name=name)) for name in ("a / b?c", "other", "a / b?c")]
    client.create_check_run(REPO, wish(name="a / b?c", head_sha="cd" * 20))
    assert [run["id"] for run in client.check_runs_named(REPO, SHA, "a / b?c")] == [made[2], made[0]]


def test_the_latest_of_each_name_and_pages(github: GitHubStandIn, client: GitHubClient, app_key: str) -> None:
    for name in ("a", "b", "a"):
        client.create_check_run(REPO, wish(name=name))
    headers = {"Authorization": f"token {a_token(github, app_key)}"}
    address = f"{github.url}/repos/{REPO}/commits/{SHA}/check-runs"
    latest = requests.get(address, headers=headers, timeout=5).json()
    assert (latest["total_count"], {run["name"] for run in latest["check_runs"]}) == (2, {"a", "b"})
    page = requests.get(f"{address}?filter=all&per_page=2&page=2", headers=headers, timeout=5).json()
    assert (page["total_count"], [run["name"] for run in page["check_runs"]]) == (3, ["a"])


def test_a_check_run_of_another_repository_is_not_found(github: GitHubStandIn, client: GitHubClient) -> None:
    github.add_repository("fen-demo/other")
    number = client.create_check_run("fen-demo/other", wish())
    with pytest.raises(GitHubRefused) as refused:
        client.update_check_run(REPO, number, {"conclusion": "success"})
    assert refused.value.status == 404


def test_open_pull_requests(github: GitHubStandIn, app_key: str) -> None:
    for number, sha in ((1, SHA), (2, "cd" * 20), (1, "ef" * 20)):
        github.open_pull_request(REPO, number, sha)
    headers = {"Authorization": f"token {a_token(github, app_key)}"}
    rows = requests.get(f"{github.url}/repos/{REPO}/pulls?state=open", headers=headers, timeout=5).json()
    assert [(row["number"], row["head"]["sha"]) for row in rows] == [(2, "cd" * 20), (1, "ef" * 20)]


def test_a_run_runs_again_once_at_a_time(github: GitHubStandIn, client: GitHubClient) -> None:
    client.rerun(REPO, "77", "rerun-failed-jobs")
    with pytest.raises(GitHubRefused, match="already running") as refused:
        client.rerun(REPO, "77", "rerun")
    assert (refused.value.status, github.reruns) == (403, [(REPO, "77", "rerun-failed-jobs")])
    github.finish_runs()
    client.rerun(REPO, "77", "rerun")
    assert github.reruns == [(REPO, "77", "rerun")]


@pytest.mark.parametrize("run_id", ["77/../../issues", "build-9", "7?x=1"])
def test_a_run_that_is_no_number_is_not_found_wherever_it_points(
    github: GitHubStandIn, client: GitHubClient, run_id: str
) -> None:
    with pytest.raises(GitHubRefused) as refused:
        client.rerun(REPO, run_id, "rerun")
    assert (refused.value.status, github.reruns) == (404, [])


def test_without_the_permission_it_is_refused(github: GitHubStandIn, app_key: str) -> None:
    reach = github.add_repository(REPO).installation_id
    token = installation_token(github, app_key, reach, permissions={"checks": "read"}).json()["token"]
    said = requests.post(
        f"{github.url}/repos/{REPO}/check-runs", json=wish(), headers={"Authorization": f"token {token}"}, timeout=5
    )
    assert (said.status_code, said.json()["message"]) == (403, "Resource not accessible by integration")
    said = requests.post(f"{github.url}/repos/{REPO}/check-runs", json=wish(), timeout=5)
    assert said.status_code == 401
    said = requests.post(f"{github.url}/repos/no/where/check-runs", json=wish(), timeout=5)
    assert said.status_code == 404
