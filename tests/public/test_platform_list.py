"""`/platforms/`: every platform on the allowlist."""

from typing import Any

import pytest
from django.test import Client

from apps.platforms.models import Platform
from tests.factories.listing import listed
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db


def test_listed_platforms_stand_with_their_repositories_and_oncalls(client: Client) -> None:
    listed({"gone/torch": 1, "acme/torch": 1})
    listed({"acme/torch": 1, "b/npu": (3, {"oncalls": ["alice", "bob"]})})
    Platform.objects.filter(slug="b-npu").update(kind="in_tree")
    assert Page(client.get("/platforms/")).tables == {
        "": [
            ("npu", "in tree", "L3 b/npu", "alice, bob"),
            ("torch", "out of tree", "L1 acme/torch", "none named"),
        ]
    }


def test_an_empty_hub_says_what_will_appear(client: Client) -> None:
    assert "Platforms appear here" in Page(client.get("/platforms/")).text


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, rows: int, django_assert_num_queries: Any
) -> None:
    listed({f"acme/torch-{number}": 2 for number in range(rows)})
    with django_assert_num_queries(3):
        assert len(Page(client.get("/platforms/")).tables[""]) == rows
