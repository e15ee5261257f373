"""`GET /api/v1/repositories/{owner}/{name}/metrics/`: the figures of the pages, for programs."""

import csv
import datetime
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from apps.core.clock import now
from apps.platforms.models import Repository
from apps.platforms.services import change_level
from apps.results.figure_table import METRICS
from apps.results.metrics import BUCKETS
from apps.results.services import recount
from tests.factories.jobs import days_ago, job
from tests.factories.listing import TESTS, listed
from tests.factories.pages import problem

pytestmark = pytest.mark.django_db
URL = "/api/v1/repositories/acme/torch/metrics/"


@pytest.fixture
def acme() -> Repository:
    """Three jobs that ended and one open one in the last days; one longer ago; another repository's."""
    made = listed({"acme/torch": 2, "other/torch": 2})
    for at, conclusion in ((3, "success"), (3, "success"), (2, "failure"), (2, ""), (20, "failure")):
        job(made["acme/torch"], conclusion, at=days_ago(at))
    job(made["other/torch"], "failure", at=days_ago(2))
    recount(days=60, now=now())
    return made["acme/torch"]


def test_every_figure_stands_with_its_window_and_rows(client: Client, acme: Repository) -> None:
    body = client.get(URL).json()
    today = now().date()
    counted_at = body["window"].pop("counted_at")
    assert counted_at is not None
    figures = body.pop("figures")
    assert body == {
        "full_name": "acme/torch",
        "platform": "acme-torch",
        "level": "L2",
        "device": "",
        "oncalls": [],
        "events": acme.events,
        "url": f"{settings.BASE_URL}/platforms/acme-torch/",
        "pass_rate": 2 / 3,
        "adjusted_pass_rate": 2 / 3,
        "first_attempt_pass_rate": 2 / 3,
        "timeout_rate": 0.0,
        "overrun_rate": 0.0,
        "avg_queue_seconds": None,
        "e2e_seconds_p50": 600,
        "answer_rate": None,
        "silence_count": None,
        "acknowledge_seconds_p50": None,
        "acknowledged_rate": 0.0,
        "less_appeals": {},
        "set_aside": [],
        "parts": {"superseded_by_push": 0, "as_declared": 0, "listed_apart": 0},
        "buckets": dict.fromkeys(BUCKETS, 0) | {"success": 2, "failure": 1, "in_progress": 1},
        "rows": 4,
        "window": {
            "days": 14,
            "from": (today - datetime.timedelta(days=13)).isoformat(),
            "to": today.isoformat(),
            "jobs": "jobs of pull requests",
        },
    }
    upstream = {"upstream_value": None, "upstream_rows": 0, "upstream_part": 0}
    assert figures["pass_rate"] == upstream | {
        "unit": "share",
        "value": 2 / 3,
        "rows": 3,
        "part": 2,
        "of": "ended jobs",
    }
    assert (list(figures), figures["avg_queue_seconds"]["rows"]) == ([metric.key for metric in METRICS], 0)


def test_a_longer_window_holds_more(client: Client, acme: Repository) -> None:
    body = client.get(URL, {"days": "30"}).json()
    assert (body["rows"], body["pass_rate"], body["window"]["days"]) == (5, 0.5, 30)


def test_the_same_as_csv(client: Client, acme: Repository) -> None:
    answer = client.get(URL, {"format": "csv"})
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    lines = list(csv.DictReader(answer.content.decode().splitlines()))
    assert [line["figure"] for line in lines] == [metric.key for metric in METRICS] + [f"bucket_{b}" for b in BUCKETS]
    by_name = {line["figure"]: (line["value"], line["rows"], line["part"], line["of"]) for line in lines}
    assert by_name["pass_rate"] == (str(2 / 3), "3", "2", "ended jobs")
    assert by_name["avg_queue_seconds"][:3] == ("", "0", "")
    assert by_name["bucket_in_progress"] == ("1", "4", "1", "jobs of pull requests")


@pytest.mark.parametrize("days", ["0", "366", "-1", "x", "1e1", "²"])
def test_days_that_cannot_be_are_400(client: Client, acme: Repository, days: str) -> None:
    status, kind, body = problem(client.get(URL, {"days": days}))
    assert (status, kind, body["code"], body["field"]) == (400, "application/problem+json", "malformed", "days")


def test_below_l2_and_unlisted_nothing_is_public(client: Client, acme: Repository) -> None:
    assert client.get(URL).json()["rows"] == 4
    for level in (1, 0):
        change_level(repository=acme, level=level, reason="Silent.", actor=TESTS, now=now())
        acme.refresh_from_db()
        body = client.get(URL).json()
        figures = [body[metric.key] for metric in METRICS] + [body["window"]["counted_at"]]
        assert (body["level"], body["rows"], set(body["buckets"].values()), set(figures)) == (
            f"L{level}",
            0,
            {0},
            {None},
        )


def test_a_repository_without_jobs_has_no_data_and_an_unknown_one_is_not_found(client: Client) -> None:
    listed({"acme/torch": 2})
    body = client.get(URL).json()
    assert (body["rows"], body["pass_rate"], body["figures"]["pass_rate"]["rows"]) == (0, None, 0)
    assert problem(client.get("/api/v1/repositories/no/body/metrics/"))[0] == 404


@pytest.mark.parametrize("rows", [1, 3])
def test_it_asks_as_often_for_one_day_as_for_three(client: Client, rows: int, django_assert_num_queries: Any) -> None:
    acme = listed({"acme/torch": 2})["acme/torch"]
    for day in range(rows):
        job(acme, "success", at=days_ago(day + 1))
    recount(days=10, now=now())
    with django_assert_num_queries(4):
        assert client.get(URL).json()["rows"] == rows
