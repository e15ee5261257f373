"""“Re-run” pressed at GitHub: the downstream's run runs again, once; or the check run says why not."""

from collections.abc import Callable

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.checks.models import Check, Rerun
from apps.checks.policy import SCOPES
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.platforms.models import Repository
from apps.platforms.services import change_level
from apps.simulator.standin import GitHubStandIn
from tests.checks.field import FEN, KESTREL, Upstream, settle
from tests.factories.listing import TESTS, listed, user
from tests.factories.pages import Page
from tests.relay.downstream import HEAD_SHA, Downstream, send_webhook
from tests.relay.test_buildkite import ONYX, Builder, mapped

pytestmark = pytest.mark.django_db
AtLevel = Callable[[int], Downstream]


@pytest.fixture
def failed(upstream: Upstream, at_level: AtLevel) -> Downstream:
    """A run of an L4 repository with two failed jobs, each with its check run."""
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel, "failure")
    upstream.says(kestrel, "failure", job_name="test", check_run_id="457")
    return kestrel


def rows() -> list[tuple[str, str, str, str, str]]:
    fields = ("repository__full_name", "scope", "state", "error", "requested_by")
    return list(Rerun.objects.order_by("pk").values_list(*fields))


def test_of_a_check_run_its_runs_failed_jobs_are_run_again(
    upstream: Upstream, failed: Downstream, github: GitHubStandIn
) -> None:
    upstream.presses_rerun()
    assert github.reruns == [(KESTREL, failed.run_id, "rerun-failed-jobs")]
    assert rows() == [(KESTREL, "rerun-failed-jobs", "sent", "", "demo-contributor-3")]


def test_a_token_that_github_no_longer_takes_is_replaced_once(
    upstream: Upstream, failed: Downstream, github: GitHubStandIn
) -> None:
    upstream.presses_rerun()
    github.fail("/rerun$", status=401)
    upstream.presses_rerun("check_suite")
    assert github.reruns == [(KESTREL, failed.run_id, "rerun-failed-jobs")]
    assert rows() == [(KESTREL, "rerun-failed-jobs", "sent", "", "demo-contributor-3")]


def test_pressed_on_each_failed_check_run_of_a_run_it_is_run_again_once(
    upstream: Upstream, failed: Downstream, github: GitHubStandIn
) -> None:
    for run in github.check_runs:
        upstream.presses_rerun(run=run)
    assert len([r for r in github.requests if "/actions/runs/" in r.path]) == 1
    assert len(rows()) == 1


def test_the_same_webhook_twice_is_one(upstream: Upstream, failed: Downstream, github: GitHubStandIn) -> None:
    run = github.check_runs[0]
    body = {"action": "rerequested", "check_run": run, "repository": {"full_name": "pytorch/pytorch"}}
    said = [send_webhook(upstream.client, body, event="check_run", delivery_id="r-1").json() for _ in range(2)]
    settle()
    assert [answer["status"] for answer in said] == ["accepted", "duplicate"]
    assert len(github.reruns) == 1


def test_a_run_that_is_not_over_runs_anyway(upstream: Upstream, failed: Downstream, github: GitHubStandIn) -> None:
    github.fail("/rerun-failed-jobs$", status=403, message="This workflow is already running")
    upstream.presses_rerun()
    assert rows() == [(KESTREL, "rerun-failed-jobs", "sent", "", "demo-contributor-3")]


def test_of_the_suite_every_run_is_run_again_once(
    upstream: Upstream, failed: Downstream, github: GitHubStandIn
) -> None:
    fen = upstream.make(FEN)
    listed({KESTREL: 4, FEN: 4})
    upstream.tells("reopened")
    upstream.says(fen, "success")
    upstream.presses_rerun("check_suite")
    assert github.reruns == [(KESTREL, failed.run_id, "rerun"), (FEN, fen.run_id, "rerun")]
    upstream.presses_rerun("check_suite")
    assert len(github.reruns) == 2


def test_of_a_suite_of_another_commit_nothing_is(upstream: Upstream, failed: Downstream, github: GitHubStandIn) -> None:
    upstream.presses_rerun("check_suite", sha="8" * 40)
    assert (github.reruns, rows()) == ([], [])


def test_of_a_check_run_that_is_not_ours_nothing_is(
    upstream: Upstream, failed: Downstream, github: GitHubStandIn
) -> None:
    upstream.presses_rerun(run=github.check_runs[0] | {"id": 7})
    assert (github.reruns, rows()) == ([], [])


@pytest.mark.parametrize("event", ["check_run", "check_suite"])
def test_below_l3_it_is_refused_and_the_check_run_says_why(
    upstream: Upstream, failed: Downstream, github: GitHubStandIn, event: str
) -> None:
    kestrel = Repository.objects.get(full_name=KESTREL)
    change_level(repository=kestrel, level=2, reason="flaky", actor=TESTS, now=now())
    upstream.presses_rerun(event)
    assert github.reruns == []
    why = "Re-runs are for L3 and L4: it is at L2 now."
    assert [(state, error) for _, _, state, error, _ in rows()] == [("refused", why)]
    endings = [run["output"]["summary"].rpartition("\n\n")[2] for run in github.check_runs]
    assert endings == [f"The re-run was refused. {why}"] * 2
    assert [run["conclusion"] for run in github.check_runs] == ["failure"] * 2


@pytest.mark.parametrize("event", ["check_run", "check_suite"])
def test_of_a_build_on_buildkite_it_is_refused_and_the_check_run_says_where(
    upstream: Upstream, failed: Downstream, github: GitHubStandIn, event: str
) -> None:
    made = upstream.make(ONYX, repository_id=5010, owner_id=6010)
    onyx = Builder(ONYX, made.github, made.client, "4711")
    mapped(listed({KESTREL: 4, ONYX: 4})[ONYX])
    upstream.tells("reopened")
    answered = onyx.post(onyx.body(upstream.last_delivery, conclusion="failure"))
    assert answered.status_code == 200, answered.json()
    settle()
    upstream.presses_rerun(event)
    why = "Build 4711 ran on Buildkite, where GitHub starts nothing: it is started again there."
    assert github.reruns == ([] if event == "check_run" else [(KESTREL, failed.run_id, "rerun")])
    assert [row for row in rows() if row[0] == ONYX] == [
        (ONYX, SCOPES[event], "refused", why, "demo-contributor-3"),
    ]
    assert github.check_runs[-1]["output"]["summary"].rpartition("\n\n")[2] == f"The re-run was refused. {why}"
    upstream.client.force_login(user(Role.OPERATOR))
    (row,) = Page(upstream.client.get("/checks/")).tables["reruns"]
    assert row[:3] == (f"{ONYX} run 4711, {SCOPES[event].label}", "⊘ refused by the hub", why)


def test_what_github_refuses_is_said_on_the_check_run_with_its_words(
    upstream: Upstream, failed: Downstream, github: GitHubStandIn
) -> None:
    github.fail("/rerun-failed-jobs$", status=403, message="Unable to retry this workflow run: | it is too old")
    upstream.presses_rerun()
    words = "GitHub answered 403: Unable to retry this workflow run: | it is too old"
    assert [(state, error) for _, _, state, error, _ in rows()] == [("given_up", words)]
    ending = github.check_runs[0]["output"]["summary"].rpartition("\n\n")[2]
    assert ending == f"The re-run failed. `{words.replace('|', '│')}`"


def test_the_next_attempt_no_longer_says_it(upstream: Upstream, failed: Downstream, github: GitHubStandIn) -> None:
    github.fail("/rerun-failed-jobs$", status=404, message="Not Found")
    upstream.presses_rerun()
    upstream.says(failed, "success", run_attempt="2", check_run_id="458")
    assert "re-run" not in github.check_runs[-1]["output"]["summary"]
    assert Check.objects.get(name__endswith="build").note == ""


def test_what_github_did_not_take_waits_for_its_time(
    upstream: Upstream, failed: Downstream, github: GitHubStandIn
) -> None:
    github.fail("/rerun-failed-jobs$", status=502)
    upstream.presses_rerun()
    row = Rerun.objects.get()
    assert (row.state, row.attempts, row.error, row.sent_at) == ("pending", 1, "GitHub answered 502", None)
    Rerun.objects.update(next_attempt_at=now())
    from apps.checks import tasks

    assert tasks.sweep_checks() == 1
    settle()
    assert github.reruns == [(KESTREL, failed.run_id, "rerun-failed-jobs")]


def test_where_no_run_is_known_it_is_refused(upstream: Upstream, at_level: AtLevel, github: GitHubStandIn) -> None:
    at_level(3)
    upstream.tells("labeled", label="ciflow/crcr/npu")
    upstream.presses_rerun()
    assert [(state, error.partition(".")[0]) for _, _, state, error, _ in rows()] == [
        ("refused", "No run is known that could be run again")
    ]


@pytest.mark.parametrize("event", ["check_run", "check_suite"])
def test_anything_else_about_check_runs_is_ignored_and_not_remembered(
    upstream: Upstream, client: Client, event: str
) -> None:
    body = {
        "action": "completed",
        event: {"id": 1, "head_sha": HEAD_SHA},
        "repository": {"full_name": "pytorch/pytorch"},
    }
    answered = send_webhook(client, body, event=event, delivery_id="c-1")
    assert (answered.status_code, answered.json()["status"]) == (200, "ignored")
    from apps.relay.models import Delivery

    assert not Delivery.objects.exists()


@pytest.mark.parametrize(
    "about",
    [None, [], {"id": "x", "head_sha": 5}, {"id": 2**70, "head_sha": "\0"}, {"id": 1, "head_sha": "\ud800"}, {}],
)
def test_a_rerequest_of_another_shape_asks_for_nothing(upstream: Upstream, client: Client, about: object) -> None:
    body = {"action": "rerequested", "check_run": about, "repository": {"full_name": "pytorch/pytorch"}, "sender": 5}
    assert send_webhook(client, body, event="check_run", delivery_id="r-2").status_code == 202
    settle()
    assert rows() == []
    assert not Wakeup.objects.exists()
