"""Nightly and periodic runs: one final callback, brought together by the commit that they are about."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from apps.core.clock import now
from apps.relay.commits import ASKED_FOR, look_up_commits
from apps.relay.models import Callback, CommitLookup, Job
from tests.factories.listing import listed
from tests.factories.pages import Page
from tests.relay.downstream import HEAD_SHA, Downstream, answer, refusal
from tests.relay.test_callback import APPLIED, DUPLICATE, KESTREL, dispatch

pytestmark = pytest.mark.django_db
PAGE = "/platforms/kestrel-demo-torch-kestrel/"
KNOWN, GONE = "ab" * 20, "cd" * 20


@pytest.fixture
def kestrel(downstream: Callable[..., Downstream], client: Client) -> Downstream:
    made = downstream(KESTREL)
    made.github.add_repository(settings.UPSTREAM_REPO)
    made.github.add_commit(settings.UPSTREAM_REPO, KNOWN)
    listed({KESTREL: (2, {"events": ["nightly"]})})
    return made


def report(made: Downstream, delivery_id: str, *, head_sha: str = "", run_id: str = "", **workflow: Any) -> Any:
    """One nightly callback, as the official action sends it."""
    run_id = run_id or made.run_id
    body = made.body(delivery_id, **({"conclusion": "success", "run_id": run_id} | workflow))
    body |= {"event_type": "nightly", "payload": {"head_sha": head_sha} if head_sha else {}}
    return made.post(body, token=made.token(run_id=run_id))


def rows(made: Downstream) -> list[tuple[str, ...]]:
    return [row[:3] for row in Page(made.client.get(PAGE, {"view": "nightly"})).tables["jobs-head"]]


def asked(made: Downstream) -> list[str]:
    return [request.path.rsplit("/", 1)[1] for request in made.github.requests if "/git/commits/" in request.path]


def test_jobs_of_one_commit_are_one_night_whatever_their_runs(kestrel: Downstream) -> None:
    report(kestrel, KNOWN, run_id="1", job_name="build")
    report(kestrel, "nightly-2026-01-31", head_sha=KNOWN, run_id="2", job_name="test", conclusion="failure")
    report(kestrel, "no commit", run_id="3", job_name="a")
    report(kestrel, "no commit", run_id="3", job_name="b")
    report(kestrel, "no commit", run_id="4", job_name="a")
    assert rows(kestrel) == [
        ("run 4 no commit named nightly", "● success", "● a"),
        ("run 3 no commit named nightly", "● success", "● b ● a"),
        ("abababa nightly", "■ failure", "■ test ● build"),
    ]
    assert f"/commit/{KNOWN}/" in Page(kestrel.client.get(PAGE, {"view": "nightly"})).links


def test_a_commit_that_upstream_does_not_know_is_flagged_and_brings_nothing_together(kestrel: Downstream) -> None:
    report(kestrel, GONE, run_id="1")
    report(kestrel, KNOWN, run_id="2")
    report(kestrel, "x", head_sha=GONE, run_id="3")
    assert look_up_commits(now=now()) == 2
    assert list(Job.objects.order_by("pk").values_list("head_sha", "flags")) == [
        (GONE, ["unknown_commit"]),
        (KNOWN, []),
        (GONE, ["unknown_commit"]),
    ]
    assert [row[0] for row in rows(kestrel)] == [
        "run 3 ▲ unknown commit cdcdcdc nightly",
        "abababa nightly",
        "run 1 ▲ unknown commit cdcdcdc nightly",
    ]
    links = Page(kestrel.client.get(PAGE, {"view": "nightly"})).links
    job = Page(kestrel.client.get(f"/jobs/{Job.objects.order_by('pk')[0].public_id}/"))
    assert [f"/commit/{sha}/" in links for sha in (KNOWN, GONE)] == [True, False]
    assert f"/commit/{GONE}/" not in job.links
    assert job.facts["about"]["Flags"] == "▲ upstream does not know the commit that it names"
    assert [kestrel.client.get(f"/commit/{sha}/").status_code for sha in (KNOWN, GONE)] == [200, 404]
    # Asked once each; who names it later is flagged without asking.
    report(kestrel, GONE, run_id="5")
    assert look_up_commits(now=now()) == 0
    assert Job.objects.order_by("-pk")[0].flags == ["unknown_commit"]
    assert sorted(asked(kestrel)) == [KNOWN, GONE]


def test_a_commit_of_a_delivery_is_known_without_asking(kestrel: Downstream, client: Client) -> None:
    dispatch(client)
    report(kestrel, HEAD_SHA)
    assert (look_up_commits(now=now()), asked(kestrel)) == (1, [])
    assert list(CommitLookup.objects.values_list("sha", "is_known")) == [(HEAD_SHA, True)]


def test_a_commit_of_long_ago_is_not_asked_about(kestrel: Downstream) -> None:
    report(kestrel, GONE)
    assert (look_up_commits(now=now() + ASKED_FOR + datetime.timedelta(minutes=1)), asked(kestrel)) == (0, [])
    assert (look_up_commits(now=now() + ASKED_FOR - datetime.timedelta(minutes=1)), asked(kestrel)) == (1, [GONE])


@pytest.mark.parametrize("status", [502, 0, 403])
def test_while_github_fails_nothing_is_flagged_and_it_is_asked_again(kestrel: Downstream, status: int) -> None:
    report(kestrel, GONE)
    kestrel.github.fail("/git/commits/", status=status)
    assert (look_up_commits(now=now()), Job.objects.get().flags) == (0, [])
    assert (look_up_commits(now=now()), Job.objects.get().flags) == (1, ["unknown_commit"])


def test_the_first_final_answer_stands(kestrel: Downstream) -> None:
    assert answer(report(kestrel, KNOWN)) == APPLIED
    look_up_commits(now=now())
    assert answer(report(kestrel, KNOWN)) == DUPLICATE
    assert refusal(report(kestrel, KNOWN, conclusion="failure")) == (
        409,
        "completion_conflict",
        "workflow.conclusion",
    )
    assert list(Job.objects.values_list("conclusion", "bucket")) == [("success", "success")]
    assert list(Callback.objects.order_by("pk").values_list("answer", flat=True)) == ["applied", "conflict"]


def test_a_nightly_has_no_start(kestrel: Downstream) -> None:
    assert refusal(report(kestrel, KNOWN, conclusion=None)) == (400, "malformed", "workflow.status")


@pytest.mark.parametrize(
    ("hours", "said"),
    [(35, "35 h ago"), (37, "▲ silent no callback for 37 hours"), (500, "▲ silent no callback for 500 hours")],
)
def test_no_callback_for_so_many_hours_is_a_state(kestrel: Downstream, hours: int, said: str) -> None:
    report(kestrel, KNOWN)
    Callback.objects.update(received_at=now() - datetime.timedelta(hours=hours, minutes=1))
    assert Page(kestrel.client.get(PAGE)).facts["contacts-1"]["Last callback"] == said


def test_who_never_called_or_left_is_not_silent(kestrel: Downstream) -> None:
    assert Page(kestrel.client.get(PAGE)).facts["contacts-1"]["Last callback"] == "never"
    report(kestrel, KNOWN)
    Callback.objects.update(received_at=now() - datetime.timedelta(days=9))
    listed({"other/torch": 2})
    assert Page(kestrel.client.get(PAGE)).facts["contacts-1"]["Last callback"] == "9 d ago"


@pytest.mark.parametrize("nights", [1, 3])
def test_the_list_asks_the_database_as_often_for_one_night_as_for_three(
    kestrel: Downstream, nights: int, django_assert_num_queries: Any
) -> None:
    for number in range(nights):
        report(kestrel, f"{number:040x}", run_id=str(number + 1))
    with django_assert_num_queries(24):
        assert len(rows(kestrel)) == nights
