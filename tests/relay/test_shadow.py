"""Shadow mode: one planted difference of each kind is found, and nothing is done."""

import copy
import datetime
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client, override_settings

from apps.accounts.policy import Role
from apps.core.clock import now
from apps.platforms.models import NameChange, Repository
from apps.relay import shadow, tasks
from apps.relay.adoption_selectors import holder
from apps.relay.models import CheckLook, Comparison, Delivery, Difference, Dispatch, Intent, Job, SeenCheck
from apps.simulator.standin import GitHubStandIn
from tests.factories.listing import listed, user
from tests.factories.pages import Page
from tests.relay.downstream import HEAD_SHA, PAYLOAD, send_webhook
from tests.relay.posts import KEY, post, post_body

pytestmark = pytest.mark.django_db
L1, L2, L3, L4 = "one/torch", "two/torch", "three/torch", "four/torch"
SETTLED = datetime.timedelta(minutes=3)
DAY_LATER = datetime.timedelta(hours=7)


@pytest.fixture(autouse=True)
def in_shadow(github: GitHubStandIn) -> Iterator[None]:
    github.add_repository("pytorch/pytorch")
    with override_settings(MODE="shadow", HUD_BOT_KEY=KEY):
        yield


def webhook(
    client: Client,
    *,
    delivery_id: str = "d-1",
    labels: tuple[str, ...] = (),
    sha: str = HEAD_SHA,
    action: str = "opened",
    label: str = "",
) -> None:
    body = copy.deepcopy(PAYLOAD) | {"action": action} | ({"label": {"name": label}} if label else {})
    body["pull_request"]["labels"] = [{"name": name} for name in labels]
    body["pull_request"]["head"]["sha"] = sha
    send_webhook(client, body, delivery_id=delivery_id)
    tasks.fan_out_deliveries([str(Delivery.objects.get(delivery_id=delivery_id).pk)])


def compared(*, after: datetime.timedelta = SETTLED) -> list[tuple[str, str, str, str, str]]:
    """Look and compare so long after now: (kind, repository, name, ours, theirs) of every difference."""
    at = now() + after
    shadow.look_at_checks(now=at)
    shadow.compare_deliveries(now=at)
    rows = Difference.objects.order_by("kind", "repository__full_name", "name")
    return list(rows.values_list("kind", "repository__full_name", "name", "ours", "theirs"))


def answered(client: Client, repository: str, conclusion: str = "success", **more: Any) -> None:
    assert post(client, post_body(conclusion, repository=repository, **more)).json()["status"] == "applied"


def test_intents_are_those_that_would_be_sent_to_and_nothing_is_sent(client: Client, github: GitHubStandIn) -> None:
    listed({L1: 1, L2: 2, L3: (2, {"events": ["nightly"]})})
    webhook(client)
    assert list(Intent.objects.order_by("pk").values_list("repository__full_name", flat=True)) == [L1, L2]
    assert (Delivery.objects.get().state, Dispatch.objects.count(), github.dispatches) == ("intended", 0, [])
    tasks.fan_out_deliveries([str(Delivery.objects.get().pk)])
    assert Intent.objects.count() == 2


def test_what_goes_as_the_hub_would_have_it_is_no_difference(client: Client, github: GitHubStandIn) -> None:
    listed({L2: 2, L4: 4})
    webhook(client)
    answered(client, L2)
    answered(client, L4)
    github.checks.show(HEAD_SHA, f"crcr/{L4}/CI/build", conclusion="success")
    github.checks.show(HEAD_SHA, "pull / linux-jammy", conclusion="failure")
    assert compared() == []
    assert list(SeenCheck.objects.values_list("name", "app_id", "status", "conclusion")) == [
        (f"crcr/{L4}/CI/build", 99, "completed", "success")
    ]


def test_an_intended_dispatch_that_nothing_answers_is_one_once_it_is_due(client: Client) -> None:
    listed({L2: 2})
    webhook(client)
    assert compared() == []
    assert compared(after=DAY_LATER) == [("not_answered", L2, "", "dispatched", "nothing posted")]
    answered(client, L2)
    assert compared(after=DAY_LATER) == []


def test_nobody_is_expected_to_answer_a_closed_pull_request(client: Client) -> None:
    listed({L2: 2})
    webhook(client, action="closed")
    assert Intent.objects.count() == 1
    assert compared(after=DAY_LATER) == []


def test_a_result_without_an_intended_dispatch(client: Client) -> None:
    listed({L2: (2, {"events": ["nightly"]})})
    webhook(client)
    answered(client, L2)
    assert compared() == [("without_intent", L2, "", "not dispatched", "1 jobs posted")]


def test_a_result_of_a_webhook_that_never_came_here(client: Client) -> None:
    listed({L2: 2})
    answered(client, L2, delivery_id="elsewhere")
    assert compared() == [("without_intent", L2, "", "its webhook never came here", "jobs posted")]
    webhook(client, delivery_id="elsewhere")
    assert compared() == []


def test_another_job_state(client: Client) -> None:
    listed({L2: 2})
    webhook(client)
    answered(client, L2)
    assert post(client, post_body("failure", repository=L2)).json()["status"] == "conflict"
    assert compared() == [("job_differs", L2, "CI / build", "success", "failure")]


def test_a_check_run_that_is_missing(client: Client) -> None:
    listed({L4: 4})
    webhook(client)
    answered(client, L4)
    assert compared() == [("check_missing", L4, f"crcr/{L4}/CI/build", "success", "none")]


@pytest.mark.parametrize(("label", "kind"), [("ciflow/crcr/npu", "check_missing"), ("ciflow/crcr/other", None)])
def test_at_l3_a_check_run_is_wanted_with_its_label(client: Client, label: str, kind: str | None) -> None:
    listed({L3: 3})
    webhook(client, labels=(label,))
    answered(client, L3)
    assert [row[0] for row in compared()] == ([kind] if kind else [])


def test_at_l3_a_label_that_comes_after_the_webhook_counts_too(client: Client, github: GitHubStandIn) -> None:
    listed({L3: 3})
    label, name = "ciflow/crcr/npu", f"crcr/{L3}/CI/build"
    webhook(client)
    answered(client, L3)
    webhook(client, delivery_id="d-2", action="labeled", labels=(label,), label=label)
    assert compared() == [("check_missing", L3, name, "success", "none")]
    github.checks.show(HEAD_SHA, name, conclusion="success")
    assert compared(after=SETTLED * 5) == []
    # What stays of it once the label is gone depends on the moment.
    webhook(client, delivery_id="d-3", action="unlabeled", label=label)
    assert compared(after=SETTLED * 9) == []


def test_check_runs_under_a_repositorys_former_name_are_its_own(client: Client, github: GitHubStandIn) -> None:
    repository = listed({L4: 4})[L4]
    webhook(client)
    answered(client, L4)
    github.checks.show(HEAD_SHA, f"crcr/{L4}/CI/build", conclusion="success")
    Repository.objects.filter(pk=repository.pk).update(full_name="moved/torch")
    NameChange.objects.create(
        repository=repository, old_name=L4, new_name="moved/torch", seen_at=now(), confirmed_at=now()
    )
    assert compared() == []
    answered(client, "moved/torch", job_name="lint", check_run_id="457")
    assert compared(after=SETTLED * 5) == [("check_missing", "moved/torch", f"crcr/{L4}/CI/lint", "success", "none")]


def test_of_a_push_nobody_is_told_a_pull_request_whatever_the_relay_echoes(client: Client) -> None:
    listed({L2: 2})
    body = {"repository": {"full_name": "pytorch/pytorch"}, "ref": "refs/heads/main", "after": "2" * 40}
    send_webhook(client, body, event="push")
    tasks.fan_out_deliveries([str(Delivery.objects.get().pk)])
    answered(client, L2, event="push")
    assert list(Job.objects.values_list("event_type", "head_sha", "pr_number")) == [("push", "2" * 40, None)]


def test_a_check_run_that_the_hub_would_not_make(client: Client, github: GitHubStandIn) -> None:
    listed({L2: 2})
    webhook(client)
    answered(client, L2)
    github.checks.show(HEAD_SHA, f"crcr/{L2}/CI/build")
    assert compared() == [("check_extra", L2, f"crcr/{L2}/CI/build", "none", "in_progress")]


def test_a_check_run_that_says_otherwise(client: Client, github: GitHubStandIn) -> None:
    listed({L4: 4})
    webhook(client)
    answered(client, L4, test_results={"passed": 3, "failed": 1})
    github.checks.show(HEAD_SHA, f"crcr/{L4}/CI/build", conclusion="success")
    # A success that reports a failed test is none.
    assert compared() == [("check_differs", L4, f"crcr/{L4}/CI/build", "failure", "success")]


def test_of_a_job_the_newest_attempt_and_of_its_legs_the_worst(client: Client, github: GitHubStandIn) -> None:
    listed({L4: 4})
    webhook(client)
    answered(client, L4, "failure")
    answered(client, L4, run_attempt="2", check_run_id="457")
    answered(client, L4, "timed_out", run_attempt="2", check_run_id="458")
    github.checks.show(HEAD_SHA, f"crcr/{L4}/CI/build", conclusion="success")
    assert compared() == [("check_differs", L4, f"crcr/{L4}/CI/build", "timed_out", "success")]


@pytest.mark.parametrize(
    ("legs", "says"),
    [
        ([("skipped", "1")], "neutral"),
        ([("action_required", "1")], "neutral"),
        ([("startup_failure", "1")], "failure"),
        ([("failure", "1"), ("", "1")], "in_progress"),
        # A re-run of one of two failed legs leaves the other one failed.
        ([("failure", "1"), ("failure", "1"), ("success", "2")], "failure"),
    ],
)
def test_it_says_what_an_active_hub_would_say(
    client: Client, github: GitHubStandIn, legs: list[tuple[str, str]], says: str
) -> None:
    listed({L4: 4})
    webhook(client)
    for number, (conclusion, run_attempt) in enumerate(legs):
        answered(client, L4, conclusion, run_attempt=run_attempt, check_run_id=str(456 + number))
    name = f"crcr/{L4}/CI/build"
    github.checks.show(HEAD_SHA, name, conclusion="" if says == "in_progress" else says)
    assert compared() == []
    github.checks.show(HEAD_SHA, name, conclusion="skipped")
    assert compared(after=SETTLED * 5) == [("check_differs", L4, name, says, "skipped")]


def test_what_cannot_be_observed_is_listed_as_such(client: Client, github: GitHubStandIn) -> None:
    listed({L1: 1, L4: 4})
    webhook(client)
    answered(client, L4)
    github.fail("/check-runs$", status=502)
    assert compared() == [
        ("not_observable", L4, "check runs", "unknown", "GitHub answered 502"),
        ("not_observable", L1, "results", "dispatched", "the relay posts no results below L2"),
    ]


def test_a_check_run_that_may_still_come_is_not_missed_yet(client: Client) -> None:
    listed({L4: 4})
    webhook(client)
    answered(client, L4)
    assert compared(after=datetime.timedelta(seconds=30)) == []
    assert [row[0] for row in compared(after=datetime.timedelta(minutes=15))] == ["check_missing"]


def test_the_newest_delivery_of_a_commit_speaks_for_its_check_runs(client: Client, github: GitHubStandIn) -> None:
    listed({L4: 4})
    webhook(client)
    answered(client, L4)
    webhook(client, delivery_id="d-2")
    answered(client, L4, "failure", delivery_id="d-2")
    github.checks.show(HEAD_SHA, f"crcr/{L4}/CI/build", conclusion="failure")
    assert compared() == []


def test_commits_are_asked_about_again_after_a_while(client: Client, github: GitHubStandIn) -> None:
    webhook(client)
    at = now()
    assert [shadow.look_at_checks(now=at + datetime.timedelta(minutes=minutes)) for minutes in (0, 5, 11)] == [1, 0, 1]
    assert CheckLook.objects.get().error == ""
    assert Comparison.objects.get().compared_at is None


def test_what_was_compared_is_dropped_after_two_weeks(client: Client) -> None:
    listed({L2: 2})
    webhook(client)
    compared(after=shadow.KEPT_FOR - SETTLED)
    assert (Intent.objects.count(), Comparison.objects.count()) == (1, 1)
    compared(after=shadow.KEPT_FOR + SETTLED)
    assert (Intent.objects.count(), Comparison.objects.count()) == (0, 0)


def test_many_check_runs_are_read_page_by_page(client: Client, github: GitHubStandIn) -> None:
    webhook(client)
    for number in range(230):
        github.checks.show(HEAD_SHA, f"crcr/{L2}/CI/job-{number}", conclusion="success")
    shadow.look_at_checks(now=now())
    assert SeenCheck.objects.count() == 230


# --- two Apps never publish the same name -----------------------------------------------------------------------


NAME = f"crcr/{L4}/CI/build"


@pytest.mark.parametrize(
    ("app_id", "sha", "minutes_ago", "may"),
    [
        (99, HEAD_SHA, 600, False),  # on this very commit
        (99, "cd" * 20, 60, False),  # elsewhere, lately
        (99, "cd" * 20, 180, True),  # elsewhere, long ago: that App has been stopped
        (int(settings.GITHUB_APP_ID), HEAD_SHA, 1, True),  # our own
    ],
)
def test_a_name_that_another_app_publishes_is_not_published(
    client: Client, github: GitHubStandIn, app_id: int, sha: str, minutes_ago: int, may: bool
) -> None:
    webhook(client, sha=sha)
    started = (now() - datetime.timedelta(minutes=minutes_ago)).isoformat(timespec="seconds")
    github.checks.show(sha, NAME, app_id=app_id, started_at=started)
    shadow.look_at_checks(now=now())
    with override_settings(MODE="active"):
        assert (holder(NAME, HEAD_SHA, now=now()) is None) is may
        assert holder(f"{NAME}-2", HEAD_SHA, now=now()) is None


def test_an_operator_of_an_active_hub_is_told(client: Client, github: GitHubStandIn) -> None:
    webhook(client)
    github.checks.show(HEAD_SHA, NAME, started_at=now().isoformat(timespec="seconds"))
    shadow.look_at_checks(now=now())
    client.force_login(user(Role.OPERATOR))
    with override_settings(MODE="active"):
        assert f"relay publishes {NAME}. The hub does not publish it." in Page(client.get("/console/relay/")).text
    assert NAME not in Page(client.get("/console/relay/")).text


# --- the page ---------------------------------------------------------------------------------------------------


def test_the_operators_page_lists_differences_by_kind(client: Client) -> None:
    listed({L2: (2, {"events": ["nightly"]}), L4: 4})
    webhook(client)
    answered(client, L2)
    answered(client, L4, job_name="<script>alert(1)</script>")
    compared()
    client.force_login(user(Role.OPERATOR))
    answer = client.get("/console/relay/")
    assert "<script>alert" not in answer.content.decode()
    page = Page(answer)
    check = f"crcr/{L4}/CI/<script>alert(1)</script>"
    missing = (f"{L4} d-1", f"check run that GitHub does not show {check}", "success", "none", "in 3 min")
    unasked = (f"{L2} d-1", "result without an intended dispatch", "not dispatched", "1 jobs posted", "in 3 min")
    assert [row[:4] for row in sorted(page.tables["differences-head"])] == [missing[:4], unasked[:4]]
    assert page.tables["unseen"] == list(shadow.NOT_OBSERVABLE)
    assert "check run that GitHub does not show: 1" in page.text
    narrowed = Page(client.get("/console/relay/?kind=check_missing")).tables["differences-head"]
    assert [row[:4] for row in narrowed] == [missing[:4]]


def test_it_lists_what_waits_for_the_dashboard(client: Client) -> None:
    with override_settings(HUD_FORWARD_URL="http://127.0.0.1:9/"):
        post(client, post_body("splendid", repository=L2))
    client.force_login(user(Role.OPERATOR))
    rows = Page(client.get("/console/relay/")).tables["forwards"]
    assert [(row[0], row[1], row[3], row[4]) for row in rows] == [(L2, "d-1", "◔ pending", "0")]
    assert "conclusion: saw 'splendid'" in rows[0][2]


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_as_often_for_one_row_as_for_three(
    client: Client, rows: int, django_assert_num_queries: Any
) -> None:
    made = listed({L2: 2, L3: 2, L4: 2})
    for repository in list(made.values())[:rows]:
        Difference.objects.create(
            kind="not_answered", delivery_id="d", repository=repository, ours="a", theirs="b", found_at=now()
        )
        with override_settings(HUD_FORWARD_URL="http://127.0.0.1:9/"):
            post(client, json.loads(json.dumps(post_body("", repository=repository.full_name))))
    client.force_login(user(Role.OPERATOR))
    with django_assert_num_queries(8):
        page = Page(client.get("/console/relay/"))
    assert (len(page.tables["forwards"]), len(page.tables["differences-head"])) == (rows, rows)
