"""Every figure by both formulas against the fixture that was reckoned by hand; page, API, CSV and what policy calls say
the same, row for row."""

import csv
import datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.core.clock import now
from apps.core.templatetags.hub import duration, percent
from apps.platforms.models import Repository
from apps.relay.models import DeclaredOutcome, Delivery, Dispatch, Job
from apps.relay.policy import BUCKETS as BUCKET_OF
from apps.results import figure_table
from apps.results.metrics import BUCKETS as ALL_BUCKETS
from apps.results.metrics import PULL_REQUESTS
from apps.results.selectors import repository_window
from apps.results.services import recount
from tests.factories.jobs import acknowledgement, job
from tests.factories.listing import listed, user
from tests.factories.pages import Page
from tests.results import figures_by_hand as by_hand

pytestmark = pytest.mark.django_db
REPOSITORY, PLAIN, EMPTY = "kestrel-demo/torch-kestrel", "fen-demo/torch-fen", "moor-demo/torch-moor"


def noon() -> datetime.datetime:
    """Yesterday's: every limit of silence has passed since."""
    yesterday = now().date() - datetime.timedelta(days=1)
    return datetime.datetime.combine(yesterday, datetime.time(12, tzinfo=datetime.UTC))


def at(minutes: float) -> datetime.datetime:
    return noon() + datetime.timedelta(minutes=minutes)


def make(repository: Repository) -> None:
    """The fixture's rows of one repository."""
    sent: dict[str, Dispatch] = {}
    oncall = user()
    for number, one in enumerate(by_hand.DISPATCHES, start=100):
        delivery = Delivery.objects.create(
            delivery_id=f"d-{one.name}",
            event="pull_request",
            action=one.action,
            state="fanned_out",
            received_at=at(one.sent),
            is_late=one.is_late,
            pr_number=one.pr or number,
            head_sha=f"{number:040x}",
        )
        sent[one.name] = Dispatch.objects.create(
            delivery=delivery,
            repository=repository,
            state="sent",
            created_at=at(one.sent),
            changed_at=at(one.sent),
            sent_at=at(one.sent),
        )
    for row in by_hand.JOBS:
        ended = row.end is not None
        told = row.reported or (row.start, row.end)
        made = Job.objects.create(
            repository=repository,
            dispatch=sent[row.dispatch],
            delivery_id=f"d-{row.dispatch}",
            event_type="pull_request",
            run_id=f"run-{row.dispatch}",
            run_attempt=row.attempt,
            workflow="CI",
            job_name=row.name,
            leg=row.leg,
            status="completed" if ended else "in_progress",
            conclusion=row.conclusion if ended else "",
            bucket=(row.bucket or BUCKET_OF[row.conclusion]) if ended else "in_progress",
            flags=list(row.flags),
            first_seen_at=at(row.start),
            start_seen_at=at(row.start),
            completed_at=at(row.end) if row.end is not None else None,
            reported_started_at=at(told[0]),
            reported_completed_at=at(told[1]) if told[1] is not None else None,
        )
        if row.acknowledged is not None:
            acknowledgement(made, oncall, at=at(row.acknowledged))
    for name, outcome in by_hand.DECLARED.items():
        DeclaredOutcome.objects.create(
            repository=repository,
            workflow="CI",
            job_name=name,
            outcome=outcome,
            reason="It tests the hub.",
            starts_at=at(0),
            ends_at=at(60),
            declared_at=at(0),
            declared_by="tests",
        )


@pytest.fixture
def field() -> dict[str, Repository]:
    """One repository with every kind, one with a single job, one without any."""
    made = listed({REPOSITORY: 2, PLAIN: 2, EMPTY: 2})
    make(made[REPOSITORY])
    job(made[PLAIN], "success", at=at(5))
    recount(days=3, now=now())
    return made


def metrics_of(client: Client, name: str) -> Any:
    return client.get(f"/api/v1/repositories/{name}/metrics/").json()


def test_both_formulas_say_what_was_reckoned_by_hand(client: Client, field: dict[str, Repository]) -> None:
    body = metrics_of(client, REPOSITORY)
    figures = body["figures"]
    assert {key: (row["value"], row["rows"], row["part"]) for key, row in figures.items()} == by_hand.OURS
    assert {
        key: (row["upstream_value"], row["upstream_rows"], row["upstream_part"])
        if row["upstream_rows"] is not None
        else None
        for key, row in figures.items()
    } == by_hand.UPSTREAM
    assert body["buckets"] == by_hand.BUCKETS
    assert (body["parts"], body["rows"]) == (by_hand.PARTS, sum(by_hand.BUCKETS.values()))


def test_the_list_of_jobs_says_of_each_where_it_counts(client: Client, field: dict[str, Repository]) -> None:
    rows = client.get("/api/v1/jobs/", {"repository": REPOSITORY, "limit": "100"}).json()["results"]
    counts = dict.fromkeys(ALL_BUCKETS, 0)
    for row in rows:
        counts[row["bucket"]] += 1
    assert counts == by_hand.BUCKETS
    assert {
        (row["delivery_id"], row["job_name"], row["run_attempt"]): (row["superseded"], row["superseded_by"])
        for row in rows
        if row["bucket"] == "superseded" or row["superseded_by"]
    } == {("d-A", "test", 1): (True, "attempt"), ("d-B", "build", 1): (True, "push")}


@pytest.mark.parametrize("name", [REPOSITORY, PLAIN, EMPTY])
def test_page_api_csv_and_policy_agree_row_for_row(client: Client, field: dict[str, Repository], name: str) -> None:
    body = metrics_of(client, name)
    called = repository_window(field[name], scope=PULL_REQUESTS, today=now().date(), days=14)
    assert {row.metric.key: row.as_data() for row in called.sheet} == body["figures"]
    assert {row.metric.key: row.figure.value for row in called.sheet} == {key: body[key] for key in body["figures"]}

    answer = client.get(f"/api/v1/repositories/{name}/metrics/", {"format": "csv"})
    lines = {line["figure"]: line for line in csv.DictReader(answer.content.decode().splitlines())}
    columns = ("value", "rows", "part", "of", "upstream_value", "upstream_rows", "upstream_part")
    assert {key: [lines[key][column] for column in columns] for key in body["figures"]} == {
        key: ["" if row[column] is None else str(row[column]) for column in columns]
        for key, row in body["figures"].items()
    }
    assert {bucket: lines[f"bucket_{bucket}"]["value"] for bucket in body["buckets"]} == {
        bucket: str(count) for bucket, count in body["buckets"].items()
    }

    page = Page(client.get(f"/platforms/{field[name].platform.slug}/"))
    assert page.tables["figures"] == [shown(row, body["figures"][row.key]) for row in figure_table.METRICS]


def shown(metric: figure_table.Metric, row: dict[str, Any]) -> tuple[str, str, str]:
    """A row of the page, from the API's."""
    value = written(metric.unit, row["value"])
    if row["upstream_rows"] is not None and row["upstream_value"] != row["value"]:
        value += f" upstream's formula: {written(metric.unit, row['upstream_value'])}"
    part = "" if row["part"] is None else f"{row['part']:,} of "
    return f"{metric.title} {metric.definition}", value, f"{part}{row['rows']:,} {metric.of}"


def written(unit: str, value: float | None) -> str:
    if value is None:
        return "no data"
    if unit == "count":
        return str(value)
    return percent(value) if unit == "share" else duration(value)


def test_the_page_of_figures_prints_the_table_and_the_api_answers_it(client: Client) -> None:
    page = Page(client.get("/policy/metrics/"))
    answered = client.get("/api/v1/metrics/").json()
    assert page.tables["kinds"] == [(kind.title, kind.meaning) for kind in figure_table.KINDS]
    assert [row["key"] for row in answered["results"]] == [metric.key for metric in figure_table.METRICS]
    titles = {kind["key"]: kind["title"] for kind in answered["kinds"]}
    for row in answered["results"]:
        assert page.tables[row["key"]] == [
            ("Definition", row["definition"]),
            ("Population", row["population"]),
            ("Unit", f"{row['unit']}; a row is a {row['counts']}"),
            ("Numerator", row["numerator"]),
            ("Denominator", row["denominator"]),
            ("Clock", row["clock"]),
            *((titles[kind], treatment) for kind, treatment in row["treatments"].items()),
            ("Upstream's own formula", row["upstream"] or "upstream has no such figure"),
        ]
        assert row["url"].endswith(f"{reverse('public:metrics')}#{row['key']}")
    assert reverse("public:metrics") in client.get("/policy/").content.decode()
