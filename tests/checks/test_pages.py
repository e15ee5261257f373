"""Where people see check runs: the job's page, the pull request's, and the operators' list."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.checks.models import Check
from apps.core.clock import now
from apps.relay.models import Job
from apps.simulator.standin import GitHubStandIn
from tests.checks import field
from tests.checks.field import BUILD, NUMBER, Upstream, settle
from tests.factories.checks import check, rerun, shown
from tests.factories.jobs import days_ago, dispatch, job
from tests.factories.listing import listed, user
from tests.factories.pages import Page
from tests.relay.downstream import HEAD_SHA, Downstream

pytestmark = pytest.mark.django_db
AtLevel = Callable[[int], Downstream]


def test_the_jobs_page_and_the_pull_requests_page_lead_to_github(
    upstream: Upstream, at_level: AtLevel, client: Client
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    upstream.says(kestrel, "failure")
    made = Check.objects.get()
    address = f"{settings.GITHUB_URL}/pytorch/pytorch/runs/{made.github_id}"
    page = Page(client.get(f"/jobs/{Job.objects.get().public_id}/"))
    assert page.facts["about"]["Check run"] == f"■ failure on GitHub ↗ {BUILD}"
    assert address in page.links
    page = Page(client.get(f"/pr/{NUMBER}/"))
    assert page.tables["checks"] == [(f"{BUILD} Failed", HEAD_SHA[:7], "■ failure on GitHub ↗")]
    assert {address, f"/jobs/{Job.objects.get().public_id}/"} <= set(page.links)


def test_what_github_does_not_show_yet_is_said(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn, client: Client
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    github.fail("/check-runs", status=502)
    upstream.says(kestrel)
    assert Page(client.get(f"/pr/{NUMBER}/")).tables["checks"][0][2] == "◐ in progress on its way to GitHub"
    Check.objects.update(state="given_up", github_id=5, sent_revision=1, sent_status="in_progress", sent_at=now())
    said = "◐ in progress not on GitHub: given up, an earlier state ↗"
    assert Page(client.get(f"/pr/{NUMBER}/")).tables["checks"][0][2] == said


def test_a_job_without_a_check_run_says_nothing_of_one(client: Client) -> None:
    made = job(listed({"acme/torch": 2})["acme/torch"], "success")
    assert "Check run" not in Page(client.get(f"/jobs/{made.public_id}/")).facts["about"]


@pytest.mark.parametrize("rows", [1, 3])
def test_the_pull_requests_page_asks_as_often_for_one_as_for_three(
    client: Client, rows: int, django_assert_num_queries: Any
) -> None:
    repository = listed({"acme/torch": 4})["acme/torch"]
    sent = dispatch(repository, pr_number=7, head_sha=HEAD_SHA)
    for number in range(rows):
        made = job(repository, "success", dispatch=sent, job_name=f"job-{number}")
        check(repository, f"crcr/acme/torch/CI/job-{number}", job=made)
    with django_assert_num_queries(31):
        page = Page(client.get("/pr/7/"))
    assert len(page.tables["checks"]) == rows


# --- the operators' list ----------------------------------------------------------------------------------------


def test_operators_see_what_waits_and_what_was_given_up_and_why(client: Client) -> None:
    repository = listed({"acme/torch": 4})["acme/torch"]
    check(repository)
    later = now() + datetime.timedelta(hours=2, minutes=1)
    values = {"state": "pending", "attempts": 0, "error": "", "changed_at": days_ago(2), "next_attempt_at": later}
    check(repository, "crcr/acme/torch/CI/<b>test", **values)
    check(repository, "crcr/acme/torch/CI/sent", **shown())
    rerun(repository, state="refused", error="Re-runs are for L3 and L4: it is at L2 now.")
    rerun(repository, run_id="8", state="sent", sent_at=now())
    client.force_login(user(Role.OPERATOR))
    page = Page(client.get("/checks/"))
    about = f"PR #7 {HEAD_SHA[:7]} says in_progress"
    assert page.tables["unsent"] == [
        (f"crcr/acme/torch/CI/build {about}", "■ given up", "GitHub answered 503", "7", "never", SEND_AGAIN),
        (f"crcr/acme/torch/CI/<b>test {about}", "◔ pending", "not tried yet", "0", "in 2 h", ""),
    ]
    assert page.tables["reruns"] == [
        (
            "acme/torch run 7, failed jobs",
            "⊘ refused by the hub",
            "Re-runs are for L3 and L4: it is at L2 now.",
            "unknown",
            "3 d ago",
        )
    ]


SEND_AGAIN = "Send again crcr/acme/torch/CI/build"


def test_an_empty_list_says_so(client: Client) -> None:
    client.force_login(user(Role.OPERATOR))
    page = Page(client.get("/checks/"))
    assert page.tables == {}
    assert "GitHub shows every check run as it should be" in page.text
    assert "Every re-run was passed on" in page.text


@pytest.mark.parametrize("rows", [1, 3])
def test_the_list_asks_as_often_for_one_as_for_three(client: Client, rows: int, django_assert_num_queries: Any) -> None:
    repository = listed({"acme/torch": 4})["acme/torch"]
    for number in range(rows):
        made = job(repository, "success", job_name=f"job-{number}")
        check(repository, f"crcr/acme/torch/CI/job-{number}", job=made)
        rerun(repository, run_id=str(number))
    client.force_login(user(Role.OPERATOR))
    with django_assert_num_queries(LIST_QUERIES):
        page = Page(client.get("/checks/"))
    assert (len(page.tables["unsent"]), len(page.tables["reruns"])) == (rows, rows)


LIST_QUERIES = 6


def test_an_operator_sends_what_was_given_up_once_more(
    upstream: Upstream, at_level: AtLevel, github: GitHubStandIn, client: Client
) -> None:
    kestrel = at_level(4)
    upstream.tells("opened")
    github.fail("/check-runs$", status=422, message="No commit found")
    upstream.says(kestrel)
    made = Check.objects.get()
    client.force_login(user(Role.OPERATOR, username="olga"))
    answered = client.post(f"/checks/{made.public_id}/resend/")
    assert (answered.status_code, answered.headers["Location"]) == (302, "/checks/")
    settle()
    assert field.shown(github) == [(BUILD, "in_progress", "Running")]
    event = Event.objects.order_by("-seq")[0]
    assert (event.action, event.actor_label, event.subject_label, event.is_decision) == (
        "check.resent",
        "olga",
        BUILD,
        False,
    )
    again = client.post(f"/checks/{made.public_id}/resend/")
    assert (again.status_code, f"{BUILD} is sent." in again.content.decode()) == (409, True)


def test_the_list_of_refused_callbacks_leads_operators_to_it_and_nobody_else(client: Client) -> None:
    client.force_login(user(Role.OPERATOR))
    assert "/checks/" in Page(client.get("/rejections/")).links
    client.force_login(user())
    assert "/checks/" not in Page(client.get("/rejections/")).links
