"""`GET /api/v1/decisions/`: the public log, for programs."""

import base64
import csv
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from apps.audit.models import Event
from apps.audit.selectors import body_of
from tests.factories.events import event
from tests.factories.jobs import days_ago
from tests.factories.pages import problem, problem_body

pytestmark = pytest.mark.django_db
URL = "/api/v1/decisions/"


@pytest.fixture
def three() -> list[Event]:
    """Three decisions, and among them an event that is none."""
    first = event(reason="=cmd|' /C calc'!A0", before={"level": 1}, after={"level": 2})
    event("otto sent it again", is_decision=False)
    return [first, event("second", now=days_ago(3)), event("third", now=days_ago(2))]


def seqs(client: Client, **query: Any) -> list[int]:
    return [row["seq"] for row in client.get(URL, query).json()["results"]]


def test_a_decision_is_the_record_with_its_links(client: Client, three: list[Event]) -> None:
    first = three[0]
    assert seqs(client) == [each.seq for each in reversed(three)]
    assert client.get(URL).json()["results"][-1] == body_of(first) | {
        "previous_hash": first.previous_hash,
        "hash": first.hash,
        "url": f"{settings.BASE_URL}/decisions/{first.seq}/",
    }


def test_as_csv_nothing_in_it_is_a_formula(client: Client, three: list[Event]) -> None:
    lines = list(csv.DictReader(client.get(URL, {"format": "csv"}).content.decode().splitlines()))
    assert [line["seq"] for line in lines] == [str(each.seq) for each in reversed(three)]
    first = lines[-1]
    assert (first["reason"], first["before"], first["actor.label"]) == ("'=cmd|' /C calc'!A0", '{"level": 1}', "ada")


def test_the_filters_are_those_of_the_page(client: Client, three: list[Event]) -> None:
    since = days_ago(3).date().isoformat()
    assert seqs(client, since=since) == [three[2].seq, three[1].seq]
    assert seqs(client, about="ACME", until=days_ago(4).date().isoformat()) == [three[0].seq]
    assert seqs(client, actor="nobody") == []
    for query, field in (({"since": "x"}, "since"), ({"action": "x"}, "action"), ({"cursor": "x"}, "cursor")):
        status, kind, body = problem(client.get(URL, query))
        assert (status, kind, body["code"], body["field"]) == (400, "application/problem+json", "malformed", field)


def test_cursors_go_on_and_back(client: Client, three: list[Event]) -> None:
    first = client.get(URL, {"limit": "2"}).json()
    second = client.get(first["next"]).json()
    assert ([row["seq"] for row in second["results"]], second["next"]) == ([three[0].seq], None)
    assert client.get(second["previous"]).json()["results"] == first["results"]


@pytest.mark.parametrize("kind", ["json", "csv"])
@pytest.mark.parametrize("rows", [1, 3])
def test_it_asks_as_often_for_one_row_as_for_three(
    client: Client, rows: int, kind: str, django_assert_num_queries: Any
) -> None:
    for _ in range(rows):
        event()
    with django_assert_num_queries(1):
        client.get(URL, {"format": kind})


@pytest.mark.parametrize("value", ["Infinity", "-Infinity", "NaN", "1e400"])
def test_a_cursor_with_no_number_of_ours_is_refused(client: Client, three: list[Event], value: str) -> None:
    cursor = base64.urlsafe_b64encode(f"[false, {value}, 1]".encode()).decode()
    detail = "cursor: cannot be read. Take it from `next` or `previous`."
    assert problem(client.get(URL, {"cursor": cursor})) == problem_body("malformed", detail, "cursor")
