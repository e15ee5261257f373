"""What the stand-in shows of the upstream repository: check runs, compare, and the App's log of webhooks."""

import datetime

import pytest
import requests

from apps.core.github import CheckRun, Compared, GitHubClient, GitHubRefused
from apps.simulator.hooks import Hook
from apps.simulator.standin import GitHubStandIn
from tests.simulator.tiny_hub import eventually

REPO = "upstream/torch"
BODY = {"repository": {"id": 5}, "action": "opened", "installation": {"id": 6}}
AT = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.UTC)


def sha(number: int) -> str:
    return f"{number:040x}"


@pytest.fixture(autouse=True)
def upstream(github: GitHubStandIn) -> None:
    github.add_repository(REPO)


def test_compare_says_ahead_behind_and_diverged_from_the_merge_base(
    github: GitHubStandIn, client: GitHubClient
) -> None:
    github.commits.add(sha(1), sha(2), sha(3), branch="main")
    github.commits.add(sha(11), sha(12), onto=sha(2))
    assert client.compare(REPO, sha(1), "main") == Compared(sha(1), sha(1), 2, 0, (sha(2), sha(3)))
    assert client.compare(REPO, "main", sha(1)) == Compared(sha(3), sha(1), 0, 2, ())
    assert client.compare(REPO, "main", sha(12)) == Compared(sha(3), sha(2), 2, 1, (sha(11), sha(12)))
    assert client.compare(REPO, "main", sha(3)) == Compared(sha(3), sha(3), 0, 0, ())


@pytest.mark.parametrize("head", [sha(99), "no-branch"])
def test_compare_of_what_is_not_there_is_refused(github: GitHubStandIn, client: GitHubClient, head: str) -> None:
    github.commits.add(sha(1), branch="main")
    with pytest.raises(GitHubRefused, match="404"):
        client.compare(REPO, "main", head)


def test_commits_with_nothing_in_common_are_refused(github: GitHubStandIn, client: GitHubClient) -> None:
    github.commits.add(sha(1), branch="main")
    github.commits.add(sha(2))
    with pytest.raises(GitHubRefused, match="404"):
        client.compare(REPO, "main", sha(2))


def test_check_runs_are_the_newest_of_each_name_and_app(github: GitHubStandIn, client: GitHubClient) -> None:
    github.checks.show(sha(1), "build", conclusion="failure")
    newest = github.checks.show(sha(1), "build", conclusion="success", started_at="2026-11-30T12:00:00Z")
    other = github.checks.show(sha(1), "build", app_id=7, app_name="other", started_at="2026-11-30T12:00:00Z")
    assert client.check_runs(REPO, sha(1)) == [
        CheckRun(other, "build", "in_progress", "", 7, "other", AT),
        CheckRun(newest, "build", "completed", "success", 99, "relay", AT),
    ]
    assert client.check_runs(REPO, sha(2)) == []
    with pytest.raises(GitHubRefused, match="422"):
        client.check_runs(REPO, "short")


def test_nobody_but_the_installation_reads_them(github: GitHubStandIn, client: GitHubClient) -> None:
    github.add_repository(REPO, installed=False)
    with pytest.raises(GitHubRefused, match="404"):
        client.check_runs(REPO, sha(1))


def test_the_log_of_webhooks_is_the_apps_and_newest_first(github: GitHubStandIn, client: GitHubClient) -> None:
    numbers = [
        github.hooks.record("push", f"d-{n}", BODY, 202 if n else 0, at=AT + datetime.timedelta(minutes=n))
        for n in range(250)
    ]
    found, cursor = client.hook_deliveries(since=AT)
    assert ([one.github_id for one in found], cursor) == (numbers[::-1], "")
    assert (found[-1].delivery_id, found[-1].at, found[-1].event, found[-1].repository_id) == ("d-0", AT, "push", 5)
    assert [(one.status, one.was_taken) for one in found[-2:]] == [(202, True), (0, False)]
    recent, _ = client.hook_deliveries(since=AT + datetime.timedelta(minutes=200))
    assert [one.github_id for one in recent] == numbers[:199:-1]


def test_a_webhook_is_sent_again_when_asked(github: GitHubStandIn, client: GitHubClient) -> None:
    again: list[Hook] = []
    github.hooks.on_redeliver = again.append
    number = github.hooks.record("push", "d-1", BODY, 0)
    client.redeliver(number)
    assert [hook.delivery_id for hook in eventually(lambda: again)] == ["d-1"]
    with pytest.raises(GitHubRefused, match="404"):
        client.redeliver(number + 1)


def test_it_drops_as_many_as_it_is_told_to(github: GitHubStandIn) -> None:
    github.hooks.drop(2)
    assert [github.hooks.is_dropped() for _ in range(3)] == [True, True, False]


def test_a_webhook_is_sent_once_twice_or_lost_and_each_attempt_is_logged(
    github: GitHubStandIn, client: GitHubClient
) -> None:
    sent: list[str] = []

    def deliver(name: str, status: int = 202) -> list[int]:
        def post() -> int:
            sent.append(name)
            if not status:
                raise requests.ConnectionError
            return status

        return github.hooks.deliver("push", name, BODY, post)

    assert deliver("once") == [202]
    github.hooks.drop(1)
    github.hooks.duplicate(1)
    assert deliver("lost") == [0]
    assert deliver("twice") == [202, 202]
    assert deliver("unanswered", 0) == [0]
    assert sent == ["once", "twice", "twice", "unanswered"]
    found, _ = client.hook_deliveries(since=AT - datetime.timedelta(days=3650))
    assert [one.delivery_id for one in reversed(found)] == ["once", "lost", "twice", "twice", "unanswered"]


def test_the_log_is_by_time_whenever_an_attempt_was_logged(github: GitHubStandIn, client: GitHubClient) -> None:
    for minute in (*range(100, 220), *range(100)):
        github.hooks.record("push", f"d-{minute}", BODY, 202, at=AT + datetime.timedelta(minutes=minute))
    found, cursor = client.hook_deliveries(since=AT + datetime.timedelta(minutes=50))
    assert ([one.delivery_id for one in found], cursor) == ([f"d-{minute}" for minute in range(219, 49, -1)], "")
