"""`/flakes/`: what flaky tests cost, the most costly first, and nothing of reports that are not public."""

import datetime
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.core.clock import now
from apps.platforms.models import Repository
from apps.quarantine.enums import FlakeKind
from apps.quarantine.models import FlakeEvent
from apps.relay.models import Job
from apps.results.models import Test
from tests.factories import jobs, reports
from tests.factories.listing import listed, member_of
from tests.factories.pages import Page
from tests.factories.tests import catalogued

pytestmark = pytest.mark.django_db


def kestrel(level: int = 2) -> Repository:
    return listed({"kestrel/torch": level})["kestrel/torch"]


def flaked(repository: Repository, test: Test, conclusion: str = "failure", pr: int | None = 7, **fields: Any) -> None:
    """The test flaked in a report of a job that ran ten minutes."""
    report = reports.report(repository, failed=1, passed=1, level=repository.level)
    job = jobs.job(repository, conclusion, pr_number=pr, check_run_id=report.run_id, run_id=report.run_id)
    report.uploads.update(job=job)
    common = {"variant": "default", "sha": report.head_sha, "kind": FlakeKind.RERUN, "at": now()} | fields
    FlakeEvent.objects.create(
        platform=repository.platform,
        test=test,
        report=report,
        run_id=report.run_id,
        run_attempt=1,
        job_name="test-ops",
        **common,
    )


def rows(who: Any = None) -> list[tuple[str, ...]]:
    client = Client()
    if who is not None:
        client.force_login(who)
    return [row[:1] + row[2:5] for row in Page(client.get("/flakes/")).tables.get("list", [])]


def test_most_pull_requests_stand_first_and_only_red_jobs_cost() -> None:
    of = kestrel()
    often, twice, never = catalogued("test_often"), catalogued("test_twice"), catalogued("test_never")
    for _ in range(4):
        flaked(of, never, "success")
    for number in (7, 7, 8):
        flaked(of, twice, pr=number)
    for number in (1, 2, 3):
        flaked(of, often, pr=number)
    flaked(of, never, is_in_incident=True)
    flaked(of, never, at=now() - datetime.timedelta(days=31))
    assert [(name.split()[0], *rest) for name, *rest in rows()] == [
        ("test_often", "3 #1 #2 #3", "0.5 3 red jobs", "3"),
        ("test_twice", "2 #7 #8", "0.5 3 red jobs", "3"),
        ("test_never", "0", "no red job", "4"),
    ]


def test_of_a_nightly_the_hours_count_alone_and_what_is_not_known_is_said() -> None:
    of = kestrel()
    flaked(of, catalogued("test_night"), pr=None)
    Job.objects.update(start_seen_at=None)
    assert [row[1:] for row in rows()] == [("0", "unknown", "1")]


def test_below_l2_nobody_else_sees_it() -> None:
    hidden = kestrel(level=1)
    flaked(hidden, catalogued("test_secret"))
    assert (rows(), [row[0].split()[0] for row in rows(member_of(hidden.platform))]) == ([], ["test_secret"])


@pytest.mark.parametrize("count", [1, 3])
def test_the_page_costs_the_same_however_long(count: int, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    of = kestrel()
    for number in range(count):
        flaked(of, catalogued(f"test_{number}"))
    with django_assert_num_queries(5):
        answer = Client().get("/flakes/")
    assert len(Page(answer).tables["list"]) == count
