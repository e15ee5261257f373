"""Oncalls acknowledge red jobs: page, API, log, the pull request's page, and the figure that follows."""

import datetime
import threading
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connections, transaction
from django.test import Client

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.models import Wakeup
from apps.platforms.models import Repository
from apps.relay.acknowledging import acknowledge
from apps.relay.models import Acknowledgement, Job
from apps.results.metrics import PULL_REQUESTS
from apps.results.selectors import repository_window
from apps.results.services import recount
from tests.factories.jobs import acknowledgement, days_ago, dispatch, job
from tests.factories.listing import listed, member_of, user
from tests.factories.pages import Page
from tests.live import ClonedDatabase

DAY, MINUTE = datetime.timedelta(days=1), datetime.timedelta(minutes=1)
HOSTILE = "<script>alert(1)</script> & more"


@pytest.fixture
def acme(db: None) -> Repository:
    return listed({"acme/torch": (2, {"oncalls": ("Olga", "pia")})})["acme/torch"]


@pytest.fixture
def red(acme: Repository) -> Job:
    return job(acme, "failure", at=now() - 15 * MINUTE)


@pytest.fixture
def olga(acme: Repository) -> User:
    """An oncall, by her GitHub login in whatever case; she speaks for no platform."""
    return user(username="olga", github_login="OLGA")


def said(**changes: Any) -> dict[str, Any]:
    return {"reason": "the driver is too old", "expected_at": f"{now() + DAY:%Y-%m-%dT%H:%M}"} | changes


def page_of(shown: Job) -> str:
    return f"/jobs/{shown.public_id}/acknowledge/"


def test_an_oncall_acknowledges_on_the_jobs_page_with_reason_and_expected_time(
    client: Client, red: Job, olga: User
) -> None:
    client.force_login(olga)
    assert f'action="{page_of(red)}"' in client.get(f"/jobs/{red.public_id}/").content.decode()
    answer = client.post(page_of(red), said())
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/jobs/{red.public_id}/")
    made = Acknowledgement.objects.get()
    page = Page(client.get(f"/jobs/{red.public_id}/"))
    expected = f"{made.expected_at:%Y-%m-%d %H:%M:%S} UTC"
    assert [row[:3] for row in page.tables["acknowledged"]] == [("olga", "the driver is too old", expected)]
    assert page_of(red) not in page.html  # she has said it
    event = Event.objects.get(action="job.acknowledged")
    body = body_of(event)
    assert (body["summary"], body["reason"], body["after"], event.actor_label, event.is_decision) == (
        f"acme/torch: test-ops is red, expected by {made.expected_at:%Y-%m-%d %H:%M} UTC",
        "the driver is too old",
        {"expected_at": made.expected_at.isoformat(), "bucket": "failure"},
        "olga",
        False,
    )


def test_the_pull_requests_page_says_by_whom_and_until_when(client: Client, acme: Repository, olga: User) -> None:
    shown = job(acme, "timed_out", dispatch=dispatch(acme, pr_number=7))
    made = acknowledgement(shown, olga, at=now())
    text = Page(client.get("/pr/7/")).text
    assert f"test-ops acknowledged by olga, expected {made.expected_at:%Y-%m-%d %H:%M:%S} UTC" in text


def test_programs_acknowledge_and_list(client: Client, red: Job, acme: Repository) -> None:
    client.force_login(member_of(acme.platform, username="mia"))
    address = f"/api/v1/jobs/{red.public_id}/"
    answer = client.post(f"{address}acknowledge/", said(reason=HOSTILE), content_type="application/json")
    made = Acknowledgement.objects.get()
    body = {
        "id": str(made.public_id),
        "job": str(red.public_id),
        "by": "mia",
        "reason": HOSTILE,
        "expected_at": f"{made.expected_at:%Y-%m-%dT%H:%M:%SZ}",
        "at": f"{made.at:%Y-%m-%dT%H:%M:%S.%fZ}",
    }
    assert (answer.status_code, answer.json()) == (200, body)
    client.logout()
    assert client.get(f"{address}acknowledgements/").json() == {"results": [body]}
    assert HOSTILE in client.get(f"{address}acknowledgements/?format=csv").content.decode()
    html = client.get(f"/jobs/{red.public_id}/").content.decode()
    assert (HOSTILE in html, "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in html) == (False, True)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"reason": " "}, "reason"),
        ({"reason": "x" * 2_001}, "reason"),
        ({"expected_at": f"{now() - DAY:%Y-%m-%dT%H:%M}"}, "expected_at"),
        ({"expected_at": f"{now() + 31 * DAY:%Y-%m-%dT%H:%M}"}, "expected_at"),
        ({"expected_at": "soon"}, "expected_at"),
        ({"expected_at": None}, "expected_at"),
    ],
)
def test_it_says_why_and_until_when(client: Client, red: Job, olga: User, changes: dict[str, Any], field: str) -> None:
    client.force_login(olga)
    answer = client.post(f"/api/v1/jobs/{red.public_id}/acknowledge/", said(**changes), content_type="application/json")
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (400, "malformed", field)
    page = client.post(page_of(red), {key: value or "" for key, value in said(**changes).items()})
    assert (page.status_code, "errorlist" in page.content.decode() or 'class="error' in page.content.decode()) == (
        200,
        True,
    )
    assert not Acknowledgement.objects.exists()


def test_only_members_and_oncalls_do(client: Client, red: Job) -> None:
    for who in (user(), user(Role.MAINTAINER), user(github_login="olga-2"), user(username="pia")):
        client.force_login(who)
        answer = client.post(f"/api/v1/jobs/{red.public_id}/acknowledge/", said(), content_type="application/json")
        assert (answer.status_code, answer.json()["code"]) == (403, "not_permitted")
        assert client.post(page_of(red), said()).status_code == 403
        assert page_of(red) not in client.get(f"/jobs/{red.public_id}/").content.decode()
    assert not Acknowledgement.objects.exists()


@pytest.mark.parametrize("conclusion", ["success", "cancelled", "skipped", ""])
def test_only_what_ended_red_is_acknowledged(acme: Repository, olga: User, conclusion: str) -> None:
    shown = job(acme, conclusion)
    with pytest.raises(Problem) as refused:
        acknowledge(job=shown, reason="so", expected_at=now() + DAY, by=olga, now=now())
    assert refused.value.code == "job_not_red"


def test_each_person_says_it_once(red: Job, olga: User, acme: Repository) -> None:
    given: dict[str, Any] = {"job": red, "reason": "so", "expected_at": now() + DAY, "now": now()}
    acknowledge(by=olga, **given)
    with pytest.raises(Problem) as refused:
        acknowledge(by=olga, **given)
    assert refused.value.code == "already_acknowledged"
    acknowledge(by=member_of(acme.platform), **given)
    assert (Acknowledgement.objects.count(), Event.objects.filter(action="job.acknowledged").count()) == (2, 2)


def test_what_was_said_is_never_changed(red: Job, olga: User) -> None:
    made = acknowledgement(red, olga, at=now())
    for change in (lambda: Acknowledgement.objects.update(reason="other"), made.delete):
        with pytest.raises(DatabaseError, match="acknowledgements are never changed"), transaction.atomic():
            change()
    assert Acknowledgement.objects.get().reason == "the driver"


@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        ({"reason": ""}, "relay_acknowledgement_reason"),
        ({"expected_at": days_ago(1)}, "relay_acknowledgement_forward"),
    ],
)
def test_postgresql_refuses_what_no_form_lets_through(
    red: Job, olga: User, changes: dict[str, Any], constraint: str
) -> None:
    with pytest.raises(IntegrityError, match=constraint):
        acknowledgement(red, olga, at=now(), **changes)


def test_time_to_acknowledge_is_counted_from_the_red_end_to_the_first_word(acme: Repository, olga: User) -> None:
    ended = days_ago(2)
    first, _ = (job(acme, "failure", at=ended - 10 * MINUTE) for _ in range(2))
    given: dict[str, Any] = {"job": first, "reason": "so", "expected_at": ended + DAY}
    acknowledge(by=olga, now=ended + 20 * MINUTE, **given)
    acknowledge(by=member_of(acme.platform), now=ended + 30 * MINUTE, **given)
    day = first.first_seen_at.date()
    assert list(Wakeup.objects.filter(topic="job_changed").values_list("key", flat=True)) == [f"{acme.pk}:{day}"]
    recount(days=7, now=now())
    figures = repository_window(acme, scope=PULL_REQUESTS, today=now().date(), days=14).figures
    median, share = figures["acknowledge_seconds_p50"], figures["acknowledged_rate"]
    assert (median.value, median.rows) == (20 * 60, 1)
    assert (share.value, share.rows, share.part) == (0.5, 2, 1)


def test_of_what_nobody_acknowledged_the_time_is_unknown(client: Client, red: Job) -> None:
    recount(days=2, now=now())
    body = client.get("/api/v1/repositories/acme/torch/metrics/").json()
    assert (body["acknowledge_seconds_p50"], body["acknowledged_rate"]) == (None, 0.0)
    rows = {row[0].split("  ")[0]: row[1] for row in Page(client.get("/platforms/acme-torch/")).tables["figures"]}
    shown = [value for name, value in rows.items() if name.startswith("Time to acknowledge")]
    assert shown == ["no data"]


@pytest.mark.parametrize("rows", [1, 3])
def test_the_jobs_page_asks_as_often_for_one_word_as_for_three(
    client: Client, red: Job, rows: int, django_assert_num_queries: Any
) -> None:
    for _ in range(rows):
        acknowledgement(red, user(), at=now())
    with django_assert_num_queries(4):
        assert len(Page(client.get(f"/jobs/{red.public_id}/")).tables["acknowledged"]) == rows
    with django_assert_num_queries(2):
        address = f"/api/v1/jobs/{red.public_id}/acknowledgements/"
        assert len(client.get(address).json()["results"]) == rows


def test_of_two_words_of_one_person_at_once_one_stands(cloned_database: ClonedDatabase) -> None:
    acme = listed({"acme/torch": (2, {"oncalls": ("olga",)})})["acme/torch"]
    shown, olga = job(acme, "failure"), user(github_login="olga")
    both, outcomes = threading.Barrier(2, timeout=30), []

    def say() -> None:
        both.wait()
        try:
            acknowledge(job=shown, reason="so", expected_at=now() + DAY, by=olga, now=now())
            outcomes.append("said")
        except Problem as problem:
            outcomes.append(problem.code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=say) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["already_acknowledged", "said"]
    assert (Acknowledgement.objects.count(), Event.objects.filter(action="job.acknowledged").count()) == (1, 1)
