"""`GET /api/v1/repositories/` and one of them."""

from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from apps.platforms.models import Repository
from tests.factories.listing import listed
from tests.factories.pages import problem

pytestmark = pytest.mark.django_db
URL = "/api/v1/repositories/"


@pytest.fixture
def made() -> dict[str, Repository]:
    """Three that are listed, one that was, and a probe."""
    listed({"gone/torch": 2})
    rows = listed(
        {
            "acme/torch": (3, {"device": "npu", "oncalls": ("zoe", "yann")}),
            "other/torch": 2,
            "zeta/torch": 1,
            "gone/torch": 0,
        }
    )
    platform = rows["acme/torch"].platform
    Repository.objects.create(platform=platform, full_name="probe/a", level=2, is_probe=True, events=[])
    return rows


def found(client: Client, **query: Any) -> list[str]:
    return [row["full_name"] for row in client.get(URL, query).json()["results"]]


ACME = {
    "full_name": "acme/torch",
    "platform": "acme-torch",
    "level": "L3",
    "device": "npu",
    "oncalls": ["zoe", "yann"],
    "events": ["nightly", "pull_request"],
    "url": f"{settings.BASE_URL}/platforms/acme-torch/",
}


def test_listed_repositories_by_name(client: Client, made: dict[str, Repository]) -> None:
    body = client.get(URL).json()
    assert (body["next"], body["previous"], body["results"][0]) == (None, None, ACME)
    assert [row["full_name"] for row in body["results"]] == ["acme/torch", "other/torch", "zeta/torch"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"q": "ACME"}, ["acme/torch"]),
        ({"q": "torch zeta"}, ["zeta/torch"]),
        ({"level": "2"}, ["other/torch"]),
        ({"kind": "out_of_tree"}, ["acme/torch", "other/torch", "zeta/torch"]),
        ({"q": "nobody"}, []),
    ],
)
def test_the_filters_are_those_of_the_directory(
    client: Client, made: dict[str, Repository], query: dict[str, str], expected: list[str]
) -> None:
    assert found(client, **query) == expected


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"level": "9"}, "level"),
        ({"kind": "x"}, "kind"),
        ({"q": "a\0"}, "q"),
        # A cursor can be made up: its text is not one that PostgreSQL takes.
        ({"cursor": "W2ZhbHNlLCAiYVx1MDAwMGIiLCAxXQ=="}, "cursor"),
        ({"cursor": "W2ZhbHNlLCAiXHVkODAwIiwgMV0="}, "cursor"),
    ],
)
def test_what_cannot_be_read_is_400_and_named(client: Client, query: dict[str, str], field: str) -> None:
    status, kind, body = problem(client.get(URL, query))
    assert (status, kind, body["code"], body["field"]) == (400, "application/problem+json", "malformed", field)


def test_cursors_go_by_name_there_and_back(client: Client, made: dict[str, Repository]) -> None:
    first = client.get(URL, {"limit": "2"}).json()
    second = client.get(first["next"]).json()
    assert [row["full_name"] for row in second["results"]] == ["zeta/torch"]
    assert (second["next"], client.get(second["previous"]).json()["results"]) == (None, first["results"])


def test_one_repository_in_any_case_of_letters_listed_or_not(client: Client, made: dict[str, Repository]) -> None:
    assert client.get(f"{URL}ACME/Torch/").json() == ACME
    assert client.get(f"{URL}gone/torch/").json()["level"] == "L0"
    for name in ("no/body", "a%00/b", "a%20b/c"):
        status, kind, body = problem(client.get(f"{URL}{name}/"))
        assert (status, kind, body["code"]) == (404, "application/problem+json", "not_found")


@pytest.mark.parametrize("rows", [1, 3])
def test_it_asks_as_often_for_one_row_as_for_three(client: Client, rows: int, django_assert_num_queries: Any) -> None:
    listed({f"acme/torch-{number}": 2 for number in range(rows)})
    with django_assert_num_queries(1):
        assert len(found(client)) == rows
