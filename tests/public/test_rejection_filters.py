"""`/rejections/`: filters and order, which never show more than a person may see."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.core.errors import CODES
from apps.platforms.models import Repository
from apps.relay.callbacks import COUNTED_STATUSES
from apps.relay.forms import REASONS
from tests.factories.jobs import days_ago, rejection
from tests.factories.listing import listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = "/rejections/"


@pytest.fixture
def acme() -> Repository:
    made = listed({"acme/torch": 2, "other/torch": 2})
    rejection(made["acme/torch"], code="never_dispatched", reason="a", count=3, last_seen=days_ago(3))
    rejection(made["acme/torch"], code="rate_limited", reason="b", count=9, last_seen=days_ago(5))
    rejection(made["other/torch"], code="rate_limited", reason="c", count=5, last_seen=days_ago(4))
    rejection(code="token_invalid", reason="d", count=1, last_seen=days_ago(2))
    return made["acme/torch"]


def seen(client: Client, person: User, **query: Any) -> list[str]:
    client.force_login(person)
    answer = client.get(URL, query)
    assert answer.status_code == 200
    return [row[0].split()[-1] for row in Page(answer).tables.get("", [])]


@pytest.mark.parametrize(
    ("query", "all_", "own"),
    [
        ({}, "dacb", "ab"),
        ({"sort": "last_seen"}, "bcad", "ba"),
        ({"sort": "-count"}, "bcad", "ba"),
        ({"sort": "count"}, "dacb", "ab"),
        ({"code": "rate_limited"}, "cb", "b"),
        ({"repository": "OTHER"}, "c", ""),
        ({"repository": "torch", "code": "never_dispatched"}, "a", "a"),
        ({"code": "csrf"}, "dacb", "ab"),
        ({"repository": "nobody"}, "", ""),
    ],
)
def test_filters_narrow_what_a_person_may_see(
    client: Client, acme: Repository, query: dict[str, str], all_: str, own: str
) -> None:
    assert "".join(seen(client, user(Role.OPERATOR), **query)) == all_
    assert "".join(seen(client, member_of(acme.platform), **query)) == own


def test_the_reasons_offered_are_refusals_that_are_counted() -> None:
    assert {code for code in REASONS if CODES[code].status not in COUNTED_STATUSES} == set()


def test_nothing_found_is_not_nothing_there(client: Client, acme: Repository) -> None:
    client.force_login(user(Role.OPERATOR))
    assert "No refused callback fits these filters" in Page(client.get(URL, {"repository": "nobody"})).text


def test_what_cannot_be_read_is_said(client: Client, acme: Repository) -> None:
    client.force_login(user(Role.OPERATOR))
    assert (
        "■ Select a valid choice. csrf is not one of the available choices."
        in Page(client.get(URL, {"code": "csrf"})).text
    )


def test_htmx_gets_the_list_alone_and_pages_keep_the_filters(client: Client, acme: Repository) -> None:
    for _ in range(50):
        rejection(acme, code="rate_limited")
    client.force_login(user(Role.OPERATOR))
    query = {"code": "rate_limited", "sort": "-count"}
    html = client.get(URL, query, headers={"HX-Request": "true", "HX-Target": "refusals"}).content.decode()
    assert html.strip().startswith('<div id="refusals">')
    assert "1 to 50 of 52" in html
    assert 'hx-get="?code=rate_limited&amp;sort=-count&amp;page=2"' in html


def test_the_order_in_force_is_marked(client: Client, acme: Repository) -> None:
    client.force_login(user(Role.OPERATOR))
    assert client.get(URL).content.decode().count('aria-sort="descending"') == 1
    assert 'aria-sort="ascending"><a href="?sort=-count"' in client.get(URL, {"sort": "count"}).content.decode()
