"""`/pr/<number>/` and `/commit/<sha>/`: every public downstream beside the others."""

import datetime
from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.core.clock import now
from apps.platforms.models import Repository
from apps.relay.models import Delivery, Dispatch, Omission
from apps.relay.services import fan_out
from tests.factories.jobs import days_ago, dispatch, job
from tests.factories.listing import listed, user
from tests.factories.pages import Page
from tests.factories.reports import report
from tests.relay.downstream import PAYLOAD, send_webhook

pytestmark = pytest.mark.django_db
SHA = "ab" * 20


@pytest.fixture
def asked() -> None:
    """One pull request, sent to four repositories at four levels; two of them have answered."""
    at = days_ago(3)
    made = listed({"a/one": 1, "b/two": 2, "c/three": 3, "d/four": 4})
    first = dispatch(
        made["d/four"], at=days_ago(3), pr_number=4711, head_sha=SHA, title="Make it fast", action="opened"
    )
    for name in ("a/one", "b/two", "c/three"):
        other = dispatch(made[name], at=at)
        other.delivery = first.delivery
        other.save()
        if name == "b/two":
            job(made[name], "failure", at=at, dispatch=other, job_name="test")
    job(made["d/four"], "success", at=at, dispatch=first, job_name="build")
    job(made["d/four"], "success", event_type="nightly", head_sha=SHA, run_id="9")


@pytest.mark.parametrize("path", ["/pr/4711/", f"/commit/{SHA}/", f"/commit/{SHA[:7]}/", f"/commit/{SHA.upper()}/"])
def test_every_public_downstream_stands_beside_the_others(client: Client, asked: None, path: str) -> None:
    page = Page(client.get(path))
    assert page.tables["delivery-1"] == [
        ("four d/four", "L4", "● success", "● build", "0 s"),
        ("three c/three", "L3", "◔ dispatched", "no answer yet", "no data"),
        ("two b/two", "L2", "■ failure", "■ test", "0 s"),
    ]
    assert "Make it fast" in page.heading


def test_what_nobody_answers_waits_for_no_answer(client: Client, asked: None) -> None:
    made = Repository.objects.get(full_name="d/four")
    dispatch(made, pr_number=4711, action="closed", at=days_ago(2))
    waiting = dispatch(made, pr_number=4711, action="reopened", at=days_ago(1))
    Dispatch.objects.filter(pk=waiting.pk).update(state="given_up", sent_at=None)
    tables = Page(client.get("/pr/4711/")).tables
    assert tables["delivery-1"] == [("four d/four", "L4", "■ given up", "no answer yet", "no data")]
    assert tables["delivery-2"] == [("four d/four", "L4", "none asked for", "no answer expected", "no data")]
    page = Page(client.get("/platforms/d-four/"))
    assert [row[1:3] for row in page.tables["jobs-head"]] == [
        ("■ given up", "no answer yet"),
        ("none asked for", "no answer expected"),
        ("● success", "● build"),
    ]


def test_what_was_sent_at_l1_owes_no_answer_after_the_repository_has_risen(client: Client) -> None:
    def stands(path: str, table: str, column: int) -> list[tuple[str, ...]]:
        return [row[column : column + 2] for row in Page(client.get(path)).tables[table]]

    made = listed({"e/five": 1})["e/five"]
    before, later = now(), now() + datetime.timedelta(seconds=1)
    send_webhook(client, PAYLOAD | {"action": "opened"}, delivery_id="d-1")
    fan_out(delivery_pk=Delivery.objects.get().pk, now=before)
    Dispatch.objects.update(state="sent", sent_at=now(), next_attempt_at=None)
    listed({"e/five": 2})
    private = ("private", "sent at L1, where answers are private")
    assert stands("/pr/184233/", "delivery-1", 2) == [private]
    assert stands("/platforms/e-five/", "jobs-head", 1) == [private]
    # Sent again after the rise, it owes one; and what answers after the rise is shown whenever it was sent.
    Dispatch.objects.update(sent_at=later)
    assert stands("/pr/184233/", "delivery-1", 2) == [("◔ dispatched", "no answer yet")]
    Dispatch.objects.update(sent_at=before)
    job(made, "success", dispatch=Dispatch.objects.get(), job_name="build")
    assert stands("/pr/184233/", "delivery-1", 2) == [("● success", "● build")]


def test_to_whom_it_was_not_sent_is_said_with_why(client: Client, asked: None) -> None:
    delivery = Dispatch.objects.filter(delivery__pr_number=4711).first().delivery  # type: ignore[union-attr]
    for name in ("a/one", "c/three"):
        repository = Repository.objects.get(full_name=name)
        Dispatch.objects.filter(repository=repository).delete()
        Omission.objects.create(delivery=delivery, repository=repository, rule="ref", sentence="main fits <b>none</b>")
    page = Page(client.get("/pr/4711/"))
    assert page.items["delivery-1"] == ["three c/three: main fits <b>none</b>"]
    assert "<b>none</b>" not in page.html


def test_who_is_at_l1_is_not_shown(client: Client, asked: None) -> None:
    assert "a/one" not in Page(client.get("/pr/4711/")).html


def test_a_commit_shows_its_nightlies_too(client: Client, asked: None) -> None:
    assert [row[1] for row in Page(client.get(f"/commit/{SHA}/")).tables["nightlies"]] == ["CI / test-ops run 9"]


@pytest.mark.parametrize("path", ["/pr/4711/", f"/commit/{SHA[:7]}/"])
def test_the_test_reports_of_the_commit_stand_there_for_who_may_see_them(
    client: Client, asked: None, path: str
) -> None:
    at = now() - datetime.timedelta(hours=2)
    report(Repository.objects.get(full_name="b/two"), head_sha=SHA, passed=7, failed=2, skipped=1, received_at=at)
    report(Repository.objects.get(full_name="a/one"), head_sha=SHA, passed=1, level=1)
    report(Repository.objects.get(full_name="d/four"), passed=1)
    page = Page(client.get(path))
    assert page.items["reports"] == ["two: test-ops, default 10 tests: 2 failed, 1 skipped; 2 h ago"]
    client.force_login(user(Role.MAINTAINER))
    assert len(Page(client.get(path)).items["reports"]) == 2


@pytest.mark.parametrize(
    "path", ["/pr/1/", "/pr/99999999999999999999999/", "/commit/abc/", "/commit/zzzzzzz/", "/commit/1234567/"]
)
def test_what_nobody_was_asked_about_is_not_found(client: Client, asked: None, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, rows: int, django_assert_num_queries: Any
) -> None:
    for repository in listed({f"acme/torch-{number}": 2 for number in range(rows)}).values():
        job(repository, "success", dispatch=dispatch(repository, pr_number=7, head_sha=SHA))
        report(repository, head_sha=SHA, passed=1)
    with django_assert_num_queries(29):
        page = Page(client.get("/pr/7/"))
    assert len([section for section in page.tables if section.startswith("delivery-")]) == rows
