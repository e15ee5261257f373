"""What evaluations read from the database, the nightly rows, the page and the API."""

import csv
import datetime
import io
from fractions import Fraction
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.policy import Role
from apps.core.clock import now
from apps.governance.evaluation import Refusals
from apps.governance.facts import facts_of, notes_of
from apps.governance.models import NightlyEvaluation
from apps.governance.nights import evaluate_field
from apps.governance.tasks import evaluate_field as evaluate_field_task
from apps.platforms.models import Repository
from apps.platforms.services import add_member
from apps.results.services import count_days
from tests.factories.jobs import callback, dispatch, job, rejection
from tests.factories.listing import TESTS, listed, user
from tests.factories.pages import Page
from tests.factories.reports import report

pytestmark = pytest.mark.django_db
DAY = datetime.timedelta(days=1)


def midday(days: int) -> datetime.datetime:
    """Noon of a UTC day so many days ago."""
    today = now().replace(hour=12, minute=0, second=0, microsecond=0)
    return today - days * DAY


@pytest.fixture
def zephyr() -> Repository:
    return listed({"zephyr/torch": (2, {"oncalls": ("zoe",)})}, now=midday(40))["zephyr/torch"]


def filled(repository: Repository, days: int = 20) -> None:
    """Two runs a day that went well."""
    for back in range(1, days + 1):
        for name in ("build", "test-ops"):
            sent = dispatch(repository, at=midday(back))
            at = midday(back) + datetime.timedelta(minutes=1)
            ended = job(
                repository,
                "success",
                at=at,
                dispatch=sent,
                delivery_id=sent.delivery.delivery_id,
                job_name=name,
                verdict="verified",
            )
            callback(ended, at=at)
    count_days([(repository.pk, midday(back).date()) for back in range(days + 1)], now=now())


def test_facts_are_read_from_what_the_hub_counted(zephyr: Repository) -> None:
    filled(zephyr)
    rejection(zephyr, count=2, first_seen=midday(16), last_seen=midday(1))
    found = facts_of([zephyr], now=now())[zephyr.pk]
    assert sorted(found.days) == [midday(back).date() for back in range(20, 0, -1)]
    assert {counted.ended for day, counted in found.days.items()} == {2}
    assert found.tenure[2] == found.tenure[0] == Fraction(int((now() - midday(40)).total_seconds()), 86_400)
    assert (found.oncalls, found.has_other_jobs) == (("zoe",), False)
    assert (found.asked_at, found.answered_at) == (midday(1), midday(1) + datetime.timedelta(minutes=1))
    assert found.refusals == Refusals(2, 34, midday(16).date())
    assert (found.verified, found.ended) == (28, 28)


def test_tenure_adds_up_intervals_and_time_above_counts(zephyr: Repository) -> None:
    listed({"zephyr/torch": 1}, now=midday(30))
    listed({"zephyr/torch": 3}, now=midday(10))
    tenure = facts_of([Repository.objects.get(pk=zephyr.pk)], now=midday(0))[zephyr.pk].tenure
    assert {level: days for level, days in tenure.items() if days} == {0: 40, 1: 40, 2: 20, 3: 10}


def test_pairs_at_l1_are_read_from_private_callbacks() -> None:
    lark = listed({"lark/torch": 1}, now=midday(5))["lark/torch"]
    callback(lark, at=midday(2), status="in_progress", conclusion=None, run_id="1")
    callback(lark, at=midday(2), run_id="1")
    callback(lark, at=midday(1), run_id="2")
    assert facts_of([lark], now=now())[lark.pk].pairs == {midday(2).date(): 1}


def test_a_changed_job_set_and_fewer_executed_tests_ask_for_a_word(zephyr: Repository) -> None:
    for back, name in [(20, "build"), (20, "test-distributed"), (3, "build"), (3, "test-new")]:
        job(zephyr, "success", at=midday(back), job_name=name)
    for back, executed in [(20, 90), (3, 84)]:
        seen = report(zephyr, passed=1)
        type(seen).objects.filter(pk=seen.pk).update(received_at=midday(back))
        seen.refresh_from_db()
        covered(seen, executed)
    assert notes_of([zephyr], now=now()) == {
        zephyr.pk: (
            "In 14 days, jobs that are gone: test-distributed.",
            "In 14 days, new jobs: test-new.",
            "Executed tests fell from 90.0% to 84.0% in 14 days.",
        )
    }


def covered(seen: Any, executed: int) -> None:
    from apps.results.models import Coverage

    values = {"names": 100, "executed": executed, "skipped": 0, "missing": 100 - executed}
    Coverage.objects.update_or_create(
        report=seen, defaults=values | {"revision": 1, "basis": "seen", "counted_at": now()}
    )


def test_what_stayed_the_same_asks_for_nothing(zephyr: Repository) -> None:
    for back in (20, 3):
        job(zephyr, "success", at=midday(back), job_name="build")
    job(zephyr, "success", at=midday(3), job_name="nightly-only", event_type="nightly")
    assert notes_of([zephyr], now=now()) == {}


def test_a_night_is_kept_once_and_only_of_what_is_listed(zephyr: Repository) -> None:
    filled(zephyr)
    assert evaluate_field(now=midday(0)) == 2
    assert evaluate_field_task() == 0
    rows = NightlyEvaluation.objects.order_by("level", "-use").values_list("day", "level", "use", "verdict", "sentence")
    assert list(rows) == [
        (midday(0).date(), 2, "stay", "met", "Meets what staying at L2 asks for."),
        (midday(0).date(), 3, "rise", "met", "Meets all that L3 asks for."),
    ]
    found = NightlyEvaluation.objects.get(level=3)
    assert {row["criterion"].removeprefix("L3.rise."): row["verdict"] for row in found.results} == {
        **dict.fromkeys(("tenure_days", "data_days", "e2e_seconds_p50", "overrun_rate", "avg_queue_seconds"), "met"),
        **dict.fromkeys(("timeout_rate", "pass_rate", "answer_rate", "runs"), "met"),
    }


@pytest.mark.parametrize(("repositories", "queries"), [(1, 13), (3, 13)])
def test_the_whole_field_is_read_with_a_fixed_number_of_queries(repositories: int, queries: int) -> None:
    from apps.governance.nights import evaluations_of

    found = listed({f"acme/torch-{number}": 2 for number in range(repositories)}, now=midday(40))
    for repository in found.values():
        filled(repository, 2)
    with CaptureQueriesContext(connection) as captured:
        evaluations_of(found.values(), now=now())
    assert len(captured) == queries, [query["sql"][:90] for query in captured]


def test_the_page_shows_each_criterion_to_anyone_from_l2_on(zephyr: Repository, client: Client) -> None:
    filled(zephyr)
    page = Page(client.get("/repositories/zephyr/torch/evaluation/"))
    assert "To reach L3" in page.text
    assert "Job pass rate" in page.text
    assert "Meets what staying at L2 asks for." in page.text
    assert "Grant" not in page.text


def test_below_l2_it_is_for_the_platforms_members_and_maintainers(client: Client) -> None:
    lark = listed({"lark/torch": 1})["lark/torch"]
    address, api = "/repositories/lark/torch/evaluation/", "/api/v1/repositories/lark/torch/evaluation/"
    assert [client.get(path).status_code for path in (address, api)] == [404, 404]
    client.force_login(user())
    assert [client.get(path).status_code for path in (address, api)] == [404, 404]
    member = user(username="lena")
    add_member(platform=lark.platform, user=member, actor=TESTS, now=now())
    for who in (member, user(Role.MAINTAINER)):
        client.force_login(who)
        assert [client.get(path).status_code for path in (address, api)] == [200, 200]


def test_what_is_not_listed_has_no_evaluation(zephyr: Repository, client: Client) -> None:
    listed({"zephyr/torch": 0})
    assert client.get("/repositories/zephyr/torch/evaluation/").status_code == 404


def test_the_api_answers_the_same_rows_also_as_csv(zephyr: Repository, client: Client) -> None:
    filled(zephyr)
    body = client.get("/api/v1/repositories/zephyr/torch/evaluation/").json()
    assert (body["repository"], body["level"], body["policy"]) == ("zephyr/torch", "L2", 0)
    assert [(one["level"], one["use"], one["verdict"]) for one in body["evaluations"]] == [
        ("L3", "rise", "met"),
        ("L2", "stay", "met"),
    ]
    rows = [row["criterion"] for one in body["evaluations"] for row in one["results"]]
    text = client.get("/api/v1/repositories/zephyr/torch/evaluation/?format=csv").content.decode()
    assert [row["criterion"] for row in csv.DictReader(io.StringIO(text))] == rows
    assert rows[-1] == "L2.stay.silent_days"
