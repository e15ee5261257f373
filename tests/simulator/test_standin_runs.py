"""What the stand-in says of workflow runs and commits, through the client that the hub asks with."""

import pytest
import requests

from apps.core.github import GitHubClient, GitHubRefused, RunJob
from apps.simulator.characters import CHARACTERS
from apps.simulator.plan import plan
from apps.simulator.runs import RunJob as Record
from apps.simulator.runs import Runs
from apps.simulator.standin import GitHubStandIn
from tests.simulator.test_plan import CLIENT_PAYLOAD

REPO = "kestrel-demo/torch-kestrel"


def test_a_runs_jobs_come_page_by_page_as_they_are_now(github: GitHubStandIn, client: GitHubClient) -> None:
    github.add_repository(REPO)
    for number in range(130):
        github.record_job(REPO, run_id=7, name=f"job {number}", check_run_id=number)
    github.record_job(REPO, run_id=7, name="job 0", check_run_id=0, conclusion="failure")
    github.record_job(REPO, run_id=7, run_attempt=2, name="again", check_run_id=500, status="queued")
    found = client.jobs_of_run(REPO, run_id="7", run_attempt=1)
    assert len(found) == 130
    assert found[:2] == [
        RunJob("0", "job 0", "completed", "failure"),
        RunJob("1", "job 1", "in_progress", ""),
    ]
    assert client.jobs_of_run(REPO, run_id="7", run_attempt=2) == [RunJob("500", "again", "queued", "")]


def test_a_renamed_repositorys_runs_are_found_by_its_former_name(github: GitHubStandIn, client: GitHubClient) -> None:
    github.add_repository(REPO)
    github.record_job(REPO, run_id=7, name="build", check_run_id=1, conclusion="success")
    github.rename_repository(REPO, "kestrel-demo/renamed")
    assert client.jobs_of_run("kestrel-demo/renamed", run_id="7", run_attempt=1)[0].conclusion == "success"


def test_an_unknown_run_is_not_found_and_a_stranger_learns_nothing(github: GitHubStandIn, client: GitHubClient) -> None:
    github.add_repository(REPO)
    with pytest.raises(GitHubRefused, match="404"):
        client.jobs_of_run(REPO, run_id="8", run_attempt=1)
    answer = requests.get(f"{github.url}/repos/{REPO}/actions/runs/8/attempts/1/jobs", timeout=5)
    assert answer.status_code == 403


def test_commits_are_known_or_not(github: GitHubStandIn, client: GitHubClient) -> None:
    github.add_repository(REPO)
    github.add_commit(REPO, "ab" * 20)
    assert [client.knows_commit(REPO, sha * 20) for sha in ("ab", "cd")] == [True, False]


def test_who_is_unknown_has_no_jobs_and_no_commits(github: GitHubStandIn) -> None:
    with pytest.raises(KeyError):
        github.record_job("nobody/x", run_id=1, name="x", check_run_id=1)
    with pytest.raises(KeyError):
        github.add_commit("nobody/x", "ab" * 20)


def test_the_oldest_runs_are_forgotten() -> None:
    runs = Runs(keep=2)
    for number in range(3):
        runs.record(1, str(number), 1, Record("x", "1", "queued"))
    assert [runs.jobs(1, str(number), 1) is None for number in range(3)] == [True, False, False]


def test_githubs_record_of_a_character_knows_better_than_one_that_lies() -> None:
    lumen = next(character for character in CHARACTERS if character.forge_rate)
    jobs = [
        job for number in range(200) for job in plan(lumen, CLIENT_PAYLOAD | {"delivery_id": f"d-{number}"}, seed=1)
    ]
    lies = [job for job in jobs if job.record("completed")["conclusion"] != job.conclusion]
    assert {(job.conclusion, job.record("completed")["conclusion"]) for job in lies} == {("success", "failure")}
    assert 0.01 < len(lies) / len(jobs) < 0.1
    assert {job.record("in_progress")["conclusion"] for job in jobs} == {""}
