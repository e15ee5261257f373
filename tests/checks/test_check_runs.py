"""Check runs on upstream's pull requests, from the webhook and the callback to what GitHub shows."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.test import Client, override_settings

from apps.checks.models import Check, PullRequest
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.platforms.models import Demotion, Repository
from apps.platforms.services import change_level
from apps.relay.models import Delivery, Dispatch, Job
from apps.simulator.standin import GitHubStandIn
from tests.checks.field import BUILD, FEN, KESTREL, LABEL, NUMBER, Upstream, settle, shown
from tests.factories.listing import TESTS, listed
from tests.relay.downstream import HEAD_SHA, Downstream, send_webhook

pytestmark = pytest.mark.django_db
AtLevel = Callable[[int], Downstream]
OTHER_SHA = "9" * 40
NEUTRAL_L3 = "At L3 Stable a check run needs its label ciflow/crcr/<device>, and it is not there"


def lowered(level: int) -> None:
    change_level(
        repository=Repository.objects.get(full_name=KESTREL), level=level, reason="flaky", actor=TESTS, now=now()
    )
    settle()


# --- which jobs have one ----------------------------------------------------------------------------------------


def test_at_l4_a_job_has_one_from_its_first_callback_to_its_last(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel)
    assert shown(github) == [(BUILD, "in_progress", "Running")]
    upstream.says(kestrel, "failure", test_results={"passed": 46, "failed": 3, "skipped": 1, "total": 50})
    job = Job.objects.get()
    assert [(r.method, r.path, r.status, r.body) for r in github.requests if "/check-runs" in r.path] == [
        (
            "POST",
            "/repos/pytorch/pytorch/check-runs",
            201,
            {
                "name": BUILD,
                "head_sha": HEAD_SHA,
                "external_id": f"{kestrel.run_id}:{NUMBER}",
                "details_url": f"{settings.BASE_URL}/jobs/{job.public_id}/",
                "status": "in_progress",
                "started_at": f"{job.start_seen_at:%Y-%m-%dT%H:%M:%SZ}",
                "output": {"title": "Running", "summary": summary("Running", kestrel.run_id, "not reported")},
            },
        ),
        (
            "PATCH",
            f"/repos/pytorch/pytorch/check-runs/{Check.objects.get().github_id}",
            200,
            {
                "external_id": f"{kestrel.run_id}:{NUMBER}",
                "details_url": f"{settings.BASE_URL}/jobs/{job.public_id}/",
                "status": "completed",
                "conclusion": "failure",
                "started_at": f"{job.start_seen_at:%Y-%m-%dT%H:%M:%SZ}",
                "completed_at": f"{job.completed_at:%Y-%m-%dT%H:%M:%SZ}",
                "output": {
                    "title": "3 of 50 tests failed",
                    "summary": summary("3 of 50 tests failed", kestrel.run_id, "46 passed, 3 failed, 1 skipped of 50"),
                },
            },
        ),
    ]


def summary(cause: str, run_id: str, tests: str) -> str:
    return (
        f"**{cause}.**\n\n| | |\n|---|---|\n| Repository | `{KESTREL}` |\n| Check | `{BUILD}` |\n"
        f"| Run | `{run_id}`, attempt 1 |\n| Tests | {tests} |\n"
        "| Level | L4 Mature; blocks a merge: yes, while its check is failed or unfinished |\n\n"
        "Reported by the repository itself."
    )


@pytest.mark.parametrize("level", [1, 2, 3])
def test_below_l4_without_the_label_there_is_none(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn, level: int
) -> None:
    kestrel = at_level(level)
    upstream.tells("opened")
    upstream.says(kestrel)
    upstream.says(kestrel, "success")
    assert (shown(github), Check.objects.count()) == ([], 0)


@pytest.mark.parametrize("level", [1, 2])
def test_below_l3_the_label_changes_nothing(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn, level: int
) -> None:
    kestrel = at_level(level)
    upstream.tells("opened")
    upstream.says(kestrel, "success")
    upstream.tells("labeled", label=LABEL)
    assert shown(github) == []


def test_another_devices_label_asks_for_nothing(upstream: Upstream, at_level: AtLevel, github: GitHubStandIn) -> None:
    kestrel = at_level(3)
    upstream.tells("opened")
    upstream.tells("labeled", label="ciflow/crcr/tpu")
    upstream.says(kestrel, "success")
    assert shown(github) == []


@pytest.mark.parametrize("event_type", ["nightly", "periodic"])
def test_a_nightly_job_never_has_one(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn, event_type: str
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    body = kestrel.body(upstream.last_delivery, conclusion="failure") | {"event_type": event_type}
    assert kestrel.post(body | {"payload": {"head_sha": HEAD_SHA}}).status_code == 200
    settle()
    assert (Job.objects.count(), shown(github)) == (1, [])


def test_a_job_of_a_push_has_none(upstream: Upstream, at_level: AtLevel, github: GitHubStandIn) -> None:
    kestrel = at_level(4)
    push = {"ref": "refs/heads/main", "after": HEAD_SHA, "repository": {"full_name": "pytorch/pytorch"}}
    send_webhook(upstream.client, push, event="push", delivery_id="p-1")
    settle()
    assert kestrel.post(kestrel.body("p-1") | {"event_type": "push"}).status_code == 200
    settle()
    assert (Job.objects.count(), shown(github)) == (1, [])


def test_a_forks_pull_request_has_its_check_run_in_the_upstream_repository(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(4)
    head = {"sha": HEAD_SHA, "ref": "fold", "repo": {"full_name": "somebody/pytorch", "fork": True}}
    upstream.tells("opened", head=head)
    upstream.says(kestrel, "success")
    assert shown(github) == [(BUILD, "success", "Passed")]
    upstream.presses_rerun()
    assert github.reruns == [(KESTREL, kestrel.run_id, "rerun-failed-jobs")]


# --- the label --------------------------------------------------------------------------------------------------


def test_the_label_before_the_run(upstream: Upstream, at_level: AtLevel, github: GitHubStandIn) -> None:
    kestrel = at_level(3)
    upstream.labels.append(LABEL)
    upstream.tells("opened")
    upstream.says(kestrel)
    upstream.says(kestrel, "success")
    assert shown(github) == [(BUILD, "success", "Passed")]
    assert len(github.check_runs) == 1


def test_the_label_while_it_runs(upstream: Upstream, at_level: AtLevel, github: GitHubStandIn) -> None:
    kestrel = at_level(3)
    upstream.tells("opened")
    upstream.says(kestrel)
    upstream.tells("labeled", label=LABEL)
    assert shown(github) == [(BUILD, "in_progress", "Running")]
    upstream.says(kestrel, "cancelled")
    assert shown(github) == [(BUILD, "cancelled", "Cancelled")]
    assert len(github.check_runs) == 1


def test_the_label_after_the_run(upstream: Upstream, at_level: AtLevel, github: GitHubStandIn) -> None:
    kestrel = at_level(3)
    upstream.tells("opened")
    upstream.says(kestrel)
    upstream.says(kestrel, "timed_out")
    upstream.tells("labeled", label=LABEL.upper())
    assert shown(github) == [(BUILD, "timed_out", "Timed out")]
    assert len(github.check_runs) == 1


def test_the_label_removed_while_it_runs_ends_it_as_neutral_and_comes_back_with_the_label(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(3)
    upstream.labels.append(LABEL)
    upstream.tells("opened")
    upstream.says(kestrel)
    upstream.tells("unlabeled", label=LABEL)
    assert shown(github) == [(BUILD, "neutral", NEUTRAL_L3)]
    upstream.tells("labeled", label=LABEL)
    assert shown(github) == [(BUILD, "in_progress", "Running")]
    upstream.says(kestrel, "success")
    assert shown(github) == [(BUILD, "success", "Passed")]
    assert [run["conclusion"] for run in github.check_runs] == ["neutral", "success"]


def test_the_label_removed_after_the_run_leaves_what_was_said(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(3)
    upstream.labels.append(LABEL)
    upstream.tells("opened")
    upstream.says(kestrel, "failure")
    upstream.tells("unlabeled", label=LABEL)
    assert shown(github) == [(BUILD, "failure", "Failed")]


def test_two_label_events_in_one_second_undo_nothing_of_each_other(upstream: Upstream, at_level: AtLevel) -> None:
    at_level(3)
    upstream.tells("opened", at=10)
    upstream.tells("labeled", label="ciflow/crcr/tpu", at=10)
    both = list(upstream.labels)
    upstream.labels = ["ciflow/trunk"]  # the other one overtook it, and was made before it
    upstream.tells("labeled", label=LABEL, at=10)
    assert PullRequest.objects.get().devices == ["npu", "tpu"]
    upstream.labels = [*both, LABEL]
    upstream.tells("unlabeled", label="ciflow/crcr/tpu", at=10)
    assert PullRequest.objects.get().devices == ["npu"]


def test_added_and_removed_in_one_second_is_removed(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(3)
    upstream.tells("opened", at=10)
    upstream.says(kestrel)
    upstream.tells("labeled", label=LABEL, at=11)
    upstream.tells("unlabeled", label=LABEL, at=11)
    assert shown(github) == [(BUILD, "neutral", NEUTRAL_L3)]
    upstream.says(kestrel, "failure")
    assert shown(github) == [(BUILD, "neutral", NEUTRAL_L3)]


def test_a_webhook_that_comes_too_late_changes_nothing(upstream: Upstream, at_level: AtLevel) -> None:
    at_level(3)
    upstream.tells("opened", at=10)
    upstream.tells("labeled", label=LABEL, at=20)
    upstream.tells("unlabeled", label=LABEL, at=15)
    assert PullRequest.objects.get().devices == ["npu"]


@pytest.mark.parametrize("said", ["9999-12-31T23:59:59-23:00", "0001-01-01T00:00:00+23:00", "yesterday"])
def test_a_webhook_of_no_time_counts_from_its_receipt(upstream: Upstream, at_level: AtLevel, said: str) -> None:
    at_level(3)
    upstream.tells("labeled", label=LABEL, updated_at=said)
    told = PullRequest.objects.get()
    assert (told.devices, told.told_at) == (["npu"], Delivery.objects.get().received_at.replace(microsecond=0))
    assert not Wakeup.objects.filter(topic="delivery_for_checks").exists()


def test_a_new_commit_keeps_the_label(upstream: Upstream, at_level: AtLevel, github: GitHubStandIn) -> None:
    kestrel = at_level(3)
    upstream.tells("opened")
    upstream.tells("labeled", label=LABEL)
    upstream.tells("synchronize", head_sha=OTHER_SHA)
    upstream.says(kestrel, "success")
    assert [(run["head_sha"], run["conclusion"]) for run in github.check_runs] == [(OTHER_SHA, "success")]


def test_another_label_is_ignored_and_asks_nothing_of_the_database(upstream: Upstream, at_level: AtLevel) -> None:
    at_level(3)
    body = {"action": "labeled", "number": 1, "label": {"name": "module: nn"}}
    body |= {"repository": {"full_name": "pytorch/pytorch"}, "pull_request": {"number": 1, "head": {"sha": HEAD_SHA}}}
    answered = send_webhook(upstream.client, body, delivery_id="l-1")
    assert (answered.status_code, answered.json()["status"]) == (200, "ignored")
    assert Delivery.objects.get().state == "ignored"


# --- closed and reopened ----------------------------------------------------------------------------------------


def test_after_the_pull_request_is_closed_open_ones_end_and_none_opens(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(4)
    opened = upstream.tells("opened")
    upstream.says(kestrel)
    closed = upstream.tells("closed")
    upstream.says(kestrel, "success", delivery_id=opened)
    upstream.says(kestrel, job_name="late", delivery_id=opened)
    upstream.says(kestrel, job_name="cleanup", delivery_id=closed)
    assert shown(github) == [(BUILD, "success", "Passed")]


def test_after_it_is_closed_a_later_attempt_opens_none_by_its_start_nor_by_its_end(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(4)
    opened = upstream.tells("opened")
    upstream.says(kestrel)
    upstream.says(kestrel, "failure")
    upstream.tells("closed")
    again = {"delivery_id": opened, "run_attempt": "2", "check_run_id": "457"}
    upstream.says(kestrel, **again)
    upstream.says(kestrel, "success", **again)
    assert (shown(github), len(github.check_runs)) == ([(BUILD, "failure", "Failed")], 1)
    upstream.tells("reopened")
    assert (shown(github), len(github.check_runs)) == ([(BUILD, "success", "Passed")], 2)


def test_a_label_on_a_closed_pull_request_does_not_open_it(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(3)
    opened = upstream.tells("opened")
    upstream.says(kestrel)
    upstream.tells("closed", at=10)
    upstream.tells("labeled", label=LABEL, at=10)
    upstream.tells("labeled", label="ciflow/crcr/tpu")
    upstream.says(kestrel, job_name="late", delivery_id=opened)
    assert shown(github) == []
    assert list(PullRequest.objects.values_list("is_open", "devices")) == [(False, ["npu", "tpu"])]


def test_reopened_the_jobs_of_the_new_dispatch_have_new_ones(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(3)
    upstream.labels.append(LABEL)
    upstream.tells("opened")
    upstream.says(kestrel, "failure")
    upstream.tells("closed")
    upstream.tells("reopened")
    assert shown(github) == [(BUILD, "failure", "Failed")]
    again = upstream.make(KESTREL)
    upstream.says(again)
    assert shown(github) == [(BUILD, "in_progress", "Running")]
    upstream.says(again, "success")
    assert [(run["external_id"], run["conclusion"]) for run in github.check_runs] == [
        (f"{kestrel.run_id}:{NUMBER}", "failure"),
        (f"{again.run_id}:{NUMBER}", "success"),
    ]


def test_reopened_what_a_job_said_while_it_was_closed_is_shown(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(4)
    opened = upstream.tells("opened")
    upstream.tells("closed")
    upstream.says(kestrel, delivery_id=opened)
    assert shown(github) == []
    upstream.tells("reopened")
    assert shown(github) == [(BUILD, "in_progress", "Running")]


def test_reopened_without_its_label_it_is_not_asked_for(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(3)
    upstream.labels.append(LABEL)
    upstream.tells("opened")
    upstream.tells("closed")
    upstream.labels.remove(LABEL)
    upstream.tells("reopened")
    upstream.says(kestrel, "success")
    assert shown(github) == []


# --- results that are not there ---------------------------------------------------------------------------------


def test_results_no_longer_kept_are_one_neutral_check_run_that_says_so(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(3)
    upstream.tells("opened")
    upstream.says(kestrel, "failure")
    Job.objects.all().delete()
    Dispatch.objects.update(created_at=now() - datetime.timedelta(days=4))
    for _ in range(2):
        upstream.tells("labeled", label=LABEL)
        upstream.tells("unlabeled", label=LABEL)
    (run,) = github.check_runs
    assert (run["name"], run["conclusion"], run["external_id"]) == (f"crcr/{KESTREL}", "neutral", f":{NUMBER}")
    assert run["details_url"] == f"{settings.BASE_URL}/pr/{NUMBER}/"
    assert run["output"] == {
        "title": "The hub keeps no results of this repository for this commit",
        "summary": "**The hub keeps no results of this repository for this commit.**\n\n"
        "Push a commit, or close and reopen the pull request: then the event is sent anew.",
    }


def test_of_a_closed_pull_request_nobody_says_that_nothing_is_kept(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(3)
    upstream.tells("opened")
    upstream.says(kestrel, "failure")
    upstream.tells("closed")
    Dispatch.objects.update(created_at=now() - datetime.timedelta(days=4))
    upstream.tells("labeled", label=LABEL)
    assert shown(github) == []
    upstream.tells("reopened")
    assert shown(github) == [(BUILD, "failure", "Failed")]


@pytest.mark.parametrize("is_kept", [True, False])
def test_while_upstream_proposes_a_demotion_nobody_says_that_nothing_is_kept(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn, settings: Any, is_kept: bool
) -> None:
    kestrel = at_level(3)
    upstream.tells("opened")
    upstream.says(kestrel, "failure")
    if not is_kept:
        Job.objects.all().delete()
    Dispatch.objects.update(created_at=now() - datetime.timedelta(days=4))
    settings.ALLOWLIST_AUTHORITY = "file"
    repository = Repository.objects.get(full_name=KESTREL)
    Demotion.objects.create(
        repository=repository, pull_number=7, title="Demote", level_before=3, state="open", opened_at=now()
    )
    upstream.tells("labeled", label=LABEL)
    assert shown(github) == []


def test_while_an_answer_is_awaited_the_label_makes_no_check_run(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    at_level(3)
    upstream.tells("opened")
    upstream.tells("labeled", label=LABEL)
    assert shown(github) == []


def test_in_shadow_mode_a_label_leaves_nothing_to_be_published_later(upstream: Upstream, at_level: AtLevel) -> None:
    at_level(3)
    with override_settings(MODE="shadow"):
        upstream.tells("labeled", label=LABEL)
    assert list(Check.objects.all()) == []


def test_an_open_one_whose_results_are_gone_ends_as_neutral(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel)
    Job.objects.all().delete()
    upstream.tells("labeled", label=LABEL)
    assert shown(github) == [(BUILD, "neutral", "The hub keeps no results of this repository for this commit")]


# --- several legs, attempts and names ---------------------------------------------------------------------------


def test_legs_of_one_name_are_one_check_run_open_while_any_runs_then_the_worst(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    for leg in "123":
        upstream.says(kestrel, check_run_id=leg)
    upstream.says(kestrel, "failure", check_run_id="2")
    upstream.says(kestrel, "success", check_run_id="1")
    assert shown(github) == [(BUILD, "in_progress", "Failed, 1 still running")]
    upstream.says(kestrel, "success", check_run_id="3")
    assert shown(github) == [(BUILD, "failure", "Failed")]
    assert "| Legs | 3, of which 0 running |" in github.check_runs[-1]["output"]["summary"]
    assert len(github.check_runs) == 1


def test_a_later_attempt_has_a_check_run_of_its_own(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel, "failure")
    upstream.says(kestrel, run_attempt="2", check_run_id="457")
    assert shown(github) == [(BUILD, "in_progress", "Running")]
    upstream.says(kestrel, "success", run_attempt="2", check_run_id="457")
    assert [run["conclusion"] for run in github.check_runs] == ["failure", "success"]
    assert Check.objects.count() == 1


def test_a_success_that_reports_failed_tests_is_a_failure_and_at_l4_what_the_policy_says(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel, "success", test_results={"passed": 1, "failed": 2, "skipped": 0, "total": 3})
    title = "1 job a success that is contradicted: passes, by policy; recorded here."
    assert shown(github) == [(BUILD, "neutral", title)]
    lowered(3)
    upstream.tells("labeled", label=LABEL)
    assert shown(github) == [(BUILD, "failure", "It says success, and reports 2 failed tests")]


@pytest.mark.parametrize(
    ("job_name", "name"),
    [
        ("test / cuda: 12 😀", f"{BUILD[:-5]}test / cuda: 12 😀"),
        ("<script>|`x`\n@all", f"{BUILD[:-5]}<script>|`x` @all"),
    ],
)
def test_any_job_name_is_text(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn, job_name: str, name: str
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel, "success", job_name=job_name)
    (run,) = github.check_runs
    assert run["name"] == name
    row = next(line for line in run["output"]["summary"].splitlines() if line.startswith("| Check |"))
    assert row == f"| Check | `{name.replace('`', '’').replace('|', '│')}` |"


def test_names_too_long_for_github_stay_apart(upstream: Upstream, at_level: AtLevel, github: GitHubStandIn) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    for end in "ab":
        upstream.says(kestrel, "success", job_name="x" * 299 + end, check_run_id=end)
    names = {run["name"] for run in github.check_runs}
    assert (len(names), {len(name) for name in names}) == (2, {255})


# --- a lowered repository ---------------------------------------------------------------------------------------


def test_lowered_to_l2_the_open_ones_end_as_neutral_and_the_others_stay(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel, "failure", job_name="test")
    upstream.says(kestrel)
    lowered(2)
    why = "The repository is at L2 Observation now, which has no check runs"
    assert shown(github) == [(BUILD.replace("build", "test"), "failure", "Failed"), (BUILD, "neutral", why)]
    upstream.says(kestrel, "failure")
    assert shown(github)[1] == (BUILD, "neutral", why)


@pytest.mark.parametrize(("labels", "ends_as"), [([LABEL], "failure"), ([], "neutral")])
def test_lowered_to_l3_it_goes_on_where_the_label_asks_for_it(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn, labels: list[str], ends_as: str
) -> None:
    kestrel = at_level(4)
    upstream.labels += labels
    upstream.tells("opened")
    upstream.says(kestrel)
    lowered(3)
    upstream.says(kestrel, "failure")
    assert [outcome for _, outcome, _ in shown(github)] == [ends_as]


def test_taken_off_the_allowlist_the_open_ones_end_too(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel)
    listed({FEN: 1})
    settle()
    assert [outcome for _, outcome, _ in shown(github)] == ["neutral"]


@pytest.mark.parametrize(("level", "made"), [(3, ["in_progress"]), (4, ["in_progress"]), (2, [])])
def test_raised_its_running_jobs_have_theirs(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn, level: int, made: list[str]
) -> None:
    kestrel = at_level(2)
    upstream.labels.append(LABEL)
    upstream.tells("opened")
    upstream.says(kestrel)
    listed({KESTREL: level})
    settle()
    assert [outcome for _, outcome, _ in shown(github)] == made


# --- the outside ------------------------------------------------------------------------------------------------


def test_the_callbacks_own_statements_are_as_many_as_without_check_runs(
    upstream: Upstream, at_level: AtLevel, client: Client, django_assert_num_queries: Any
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    kestrel.post(kestrel.body(upstream.last_delivery, job_name="first, pins the identity"))
    body, token = kestrel.body(upstream.last_delivery), kestrel.token()
    with django_assert_num_queries(3):
        kestrel.post(body, token=token)


# --- upstream's own demotion ------------------------------------------------------------------------------------


def test_while_upstream_proposes_a_demotion_no_new_one_begins_and_open_ones_end(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn, settings: Any
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel)
    settings.ALLOWLIST_AUTHORITY = "file"
    repository = Repository.objects.get(full_name=KESTREL)
    demotion = Demotion.objects.create(
        repository=repository, pull_number=7, title="Demote", level_before=4, state="open", opened_at=now()
    )
    upstream.says(kestrel, "success")
    upstream.says(kestrel, job_name="other")
    assert shown(github) == [(BUILD, "success", "Passed")]
    Demotion.objects.filter(pk=demotion.pk).update(state="closed", ended_at=now())
    upstream.says(kestrel, job_name="third")
    # What runs now is a part that its repository is awaited for, so its other check run waits too.
    assert [row[1] for row in shown(github)] == ["in_progress", "in_progress", "in_progress"]
