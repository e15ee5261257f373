"""`GET /api/v1/rejections/`: what the page shows, for programs."""

import datetime
from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.platforms.models import Repository
from apps.relay.models import Rejection
from tests.factories.jobs import rejection
from tests.factories.listing import listed, member_of, user
from tests.factories.pages import problem

pytestmark = pytest.mark.django_db
URL = "/api/v1/rejections/"
AT = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)


@pytest.fixture
def acme() -> Repository:
    """Its refusals, those of another platform, and those of callers that proved nothing, newest first."""
    made = listed({"acme/torch": 2, "other/torch": 2})
    rejection(made["acme/torch"], code="never_dispatched", reason="ours", count=12, first_seen=AT, last_seen=AT)
    rejection(made["other/torch"], code="rate_limited", reason="theirs", last_seen=AT - datetime.timedelta(hours=1))
    rejection(code="token_invalid", reason="nobody's", last_seen=AT - datetime.timedelta(hours=2))
    return made["acme/torch"]


def reasons(client: Client, **query: Any) -> list[str]:
    return [row["reason"] for row in client.get(URL, query).json()["results"]]


def test_a_row_says_who_why_how_often_and_when_and_holds_no_token(client: Client, acme: Repository) -> None:
    client.force_login(member_of(acme.platform))
    response = client.get(URL)
    assert (response.status_code, response.json()) == (
        200,
        {
            "next": None,
            "previous": None,
            "results": [
                {
                    "issuer": "https://token.actions.githubusercontent.com",
                    "ids": {"repository": "acme/torch", "id": "501", "owner_id": "401"},
                    "code": "never_dispatched",
                    "reason": "ours",
                    "count": 12,
                    "first_seen": "2026-11-20T12:00:00Z",
                    "last_seen": "2026-11-20T12:00:00Z",
                }
            ],
        },
    )


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
def test_who_runs_the_hub_sees_all_newest_first(client: Client, acme: Repository, role: Role) -> None:
    client.force_login(user(role))
    assert reasons(client) == ["ours", "theirs", "nobody's"]


@pytest.mark.parametrize("role", [None, Role.MAINTAINER])
def test_who_is_neither_is_refused(client: Client, acme: Repository, role: Role | None) -> None:
    client.force_login(user(role))
    status, kind, body = problem(client.get(URL))
    assert (status, kind, body["code"]) == (403, "application/problem+json", "not_permitted")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"code": "rate_limited"}, ["theirs"]),
        ({"repository": "ACME"}, ["ours"]),
        ({"sort": "last_seen"}, ["nobody's", "theirs", "ours"]),
        ({"sort": "-count"}, ["ours", "nobody's", "theirs"]),
        ({"code": ""}, ["ours", "theirs", "nobody's"]),
    ],
)
def test_the_filters_are_those_of_the_page(
    client: Client, acme: Repository, query: dict[str, str], expected: list[str]
) -> None:
    client.force_login(user(Role.OPERATOR))
    assert reasons(client, **query) == expected


@pytest.mark.parametrize(
    ("query", "field"), [({"code": "x"}, "code"), ({"sort": "x"}, "sort"), ({"repository": "a\0"}, "repository")]
)
def test_a_filter_that_cannot_be_read_is_400_and_named(
    client: Client, acme: Repository, query: dict[str, str], field: str
) -> None:
    client.force_login(user(Role.OPERATOR))
    status, kind, body = problem(client.get(URL, query))
    assert (status, kind, body["code"], body["field"]) == (400, "application/problem+json", "malformed", field)


@pytest.mark.parametrize(
    "cursor", ["x", "\0", "é", "W10=", "WzEsMiwzXQ==", "W3RydWUsICJub3BlIiwgMV0=", "W3RydWUsIG51bGwsIDFd", "W" * 5_000]
)
def test_a_cursor_that_is_none_of_ours_says_so(client: Client, acme: Repository, cursor: str) -> None:
    client.force_login(user(Role.OPERATOR))
    status, _, body = problem(client.get(URL, {"cursor": cursor}))
    assert (status, body["code"], body["detail"]) == (
        400,
        "malformed",
        "cursor: cannot be read. Take it from `next` or `previous`.",
    )


def test_cursors_lead_through_all_rows_once_also_while_new_ones_come(client: Client, acme: Repository) -> None:
    same = AT - datetime.timedelta(days=1)
    for number in range(7):
        rejection(code="token_invalid", reason=f"n{number}", last_seen=same)
    expected = list(Rejection.objects.order_by("-last_seen", "-pk").values_list("reason", flat=True))
    client.force_login(user(Role.OPERATOR))
    seen: list[str] = []
    address, pages, body = f"{URL}?limit=3", 0, {"previous": ""}
    while address:
        body = client.get(address).json()
        seen += [row["reason"] for row in body["results"]]
        address, pages = body["next"], pages + 1
        rejection(code="token_invalid", reason=f"later {pages}")
    assert (seen, pages) == (expected, 4)
    back = client.get(body["previous"]).json()
    assert [row["reason"] for row in back["results"]] == expected[6:9]
    assert [row["reason"] for row in client.get(back["next"]).json()["results"]] == expected[9:]


@pytest.mark.parametrize("sort", ["last_seen", "-last_seen", "count", "-count"])
def test_there_and_back_again_in_every_order(client: Client, acme: Repository, sort: str) -> None:
    for number in range(4):
        rejection(code="token_invalid", reason=f"n{number}", last_seen=AT, count=12)
    client.force_login(user(Role.OPERATOR))
    expected = reasons(client, sort=sort)
    there: list[str] = []
    back: list[str] = []
    address, body = f"{URL}?sort={sort}&limit=2", {"previous": ""}
    while address:
        body = client.get(address).json()
        there += [row["reason"] for row in body["results"]]
        address = body["next"]
    address = body["previous"]
    while address:
        body = client.get(address).json()
        back = [row["reason"] for row in body["results"]] + back
        address = body["previous"]
    assert (there, back) == (expected, expected[:-1])


@pytest.mark.parametrize("limit", ["0", "501", "x", "-1", "1e2", "²"])
def test_a_limit_that_cannot_be_is_400(client: Client, acme: Repository, limit: str) -> None:
    client.force_login(user(Role.OPERATOR))
    status, _, body = problem(client.get(URL, {"limit": limit}))
    assert (status, body["code"], body["field"]) == (400, "malformed", "limit")


@pytest.mark.parametrize("rows", [1, 3])
def test_the_list_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, rows: int, django_assert_num_queries: Any
) -> None:
    for _ in range(rows):
        rejection()
    client.force_login(user(Role.OPERATOR))
    with django_assert_num_queries(4):
        assert len(client.get(URL).json()["results"]) == rows
