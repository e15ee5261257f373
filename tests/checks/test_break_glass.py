"""`break_glass.py`: every open check run of ours ends, with nothing but the App's key."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from accelhub.env import BASE_DIR
from apps.core.github import client
from apps.simulator.standin import GitHubStandIn

UPSTREAM = "pytorch/pytorch"
HEADS = [f"{number:040x}" for number in range(1, 104)]  # more than a page of them
MERGED = "f" * 40


def run(github: GitHubStandIn, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it as an operator does: away from the hub, with an environment of its own."""
    environment = {
        "ACCELHUB_GITHUB_APP_ID": settings.GITHUB_APP_ID,
        "ACCELHUB_GITHUB_APP_PRIVATE_KEY": settings.GITHUB_APP_PRIVATE_KEY,
        "ACCELHUB_GITHUB_API_URL": github.url,
        "PYTHONUTF8": "1",
    }
    return subprocess.run(
        [sys.executable, str(BASE_DIR / "break_glass.py"), *arguments],
        env=environment | variables,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def github_with_runs(github: GitHubStandIn) -> GitHubStandIn:
    """Check runs of ours, open and over, at open pull requests and at a merged one; and one of another App."""
    github.add_repository(UPSTREAM)
    for number, sha in enumerate(HEADS):
        github.open_pull_request(UPSTREAM, 1000 + number, sha)
    for sha, name, state in (
        (HEADS[0], "crcr/a/b/CI/open", {"status": "in_progress"}),
        (HEADS[0], "crcr/a/b/CI/over", {"status": "completed", "conclusion": "failure"}),
        (HEADS[-1], "crcr/a/b/CI/😀", {"status": "queued"}),
        (MERGED, "crcr/a/b/CI/merged", {"status": "in_progress"}),
    ):
        client().create_check_run(UPSTREAM, {"name": name, "head_sha": sha} | state)
    return github


def outcomes(github: GitHubStandIn) -> list[tuple[str, str | None]]:
    return [(run["name"].rpartition("/")[2], run["conclusion"]) for run in github.check_runs]


def test_every_open_one_ends_as_neutral_and_says_why(github_with_runs: GitHubStandIn) -> None:
    done = run(github_with_runs, "--reason", "The database is being restored.")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [
        "2 check runs ended at 103 commits, 0 failed",
        "ended  000000000000  crcr/a/b/CI/open",
        "ended  000000000000  crcr/a/b/CI/😀",
    ]
    assert outcomes(github_with_runs) == [("open", "neutral"), ("over", "failure"), ("😀", "neutral"), ("merged", None)]
    assert github_with_runs.check_runs[0]["output"] == {
        "title": "Ended by the hub's operators",
        "summary": "**Ended by the hub's operators.**\n\nThe database is being restored.\n\n"
        "It ended without a verdict on the change.",
    }


def test_a_commit_can_be_named(github_with_runs: GitHubStandIn) -> None:
    assert run(github_with_runs, "--reason", "x", "--sha", MERGED).returncode == 0
    assert ("merged", "neutral") in outcomes(github_with_runs)


def test_a_dry_run_ends_none(github_with_runs: GitHubStandIn) -> None:
    done = run(github_with_runs, "--reason", "x", "--dry-run")
    assert "2 check runs would be ended at 103 commits, 0 failed" in done.stdout
    assert outcomes(github_with_runs)[0] == ("open", None)


def test_a_check_run_of_another_app_is_left_alone(github_with_runs: GitHubStandIn) -> None:
    github_with_runs.add_foreign_check_run(UPSTREAM, HEADS[0], "theirs")
    assert run(github_with_runs, "--reason", "x").returncode == 0
    assert outcomes(github_with_runs)[-1] == ("theirs", None)


def test_a_check_run_of_an_app_that_is_gone_stops_nothing(github_with_runs: GitHubStandIn) -> None:
    github_with_runs.add_foreign_check_run(UPSTREAM, HEADS[0], "orphan", is_app_gone=True)
    done = run(github_with_runs, "--reason", "x")
    assert (done.returncode, done.stderr) == (0, "")
    assert outcomes(github_with_runs)[0] == ("open", "neutral")
    assert outcomes(github_with_runs)[-1] == ("orphan", None)


def test_what_github_does_not_take_at_first_is_tried_again(github_with_runs: GitHubStandIn) -> None:
    github_with_runs.fail("/check-runs/", status=502)
    assert run(github_with_runs, "--reason", "x").returncode == 0


def test_what_stays_open_is_named_and_the_exit_status_says_so(github_with_runs: GitHubStandIn) -> None:
    github_with_runs.fail("/check-runs/", status=422, times=100)
    done = run(github_with_runs, "--reason", "x")
    assert (done.returncode, done.stdout.count("FAILED")) == (1, 2)
    assert "0 check runs ended at 103 commits, 2 failed" in done.stdout


@pytest.mark.parametrize("missing", ["ACCELHUB_GITHUB_APP_ID", "ACCELHUB_GITHUB_APP_PRIVATE_KEY"])
def test_without_the_app_it_says_what_to_set(github: GitHubStandIn, missing: str) -> None:
    done = run(github, "--reason", "x", **{missing: ""})
    assert done.returncode == 2
    assert done.stderr == "ACCELHUB_GITHUB_APP_ID and ACCELHUB_GITHUB_APP_PRIVATE_KEY: set both.\n"


def test_a_key_from_a_file(github_with_runs: GitHubStandIn, tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_text(settings.GITHUB_APP_PRIVATE_KEY)
    key = {"ACCELHUB_GITHUB_APP_PRIVATE_KEY": "", "ACCELHUB_GITHUB_APP_PRIVATE_KEY_FILE": str(path)}
    assert run(github_with_runs, "--reason", "x", **key).returncode == 0


def test_github_away_or_a_wrong_key_is_one_line(github: GitHubStandIn) -> None:
    done = run(github, "--reason", "x", ACCELHUB_GITHUB_APP_PRIVATE_KEY="no key")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("GitHub could not be asked: ")


def test_it_imports_nothing_of_the_hub_and_no_django() -> None:
    tree = ast.parse((BASE_DIR / "break_glass.py").read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    foreign = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names)
    assert foreign == {"jwt", "requests"}
