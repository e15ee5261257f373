"""`/rejections/`: refused callbacks, counted. Operators see all, members those of their platforms."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.platforms.models import Repository
from tests.factories.jobs import days_ago, rejection
from tests.factories.listing import listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = reverse("public:rejections")


@pytest.fixture
def acme() -> Repository:
    """Its refusals, those of another platform, and those of callers that proved nothing."""
    made = listed({"acme/torch": 2, "other/torch": 2})
    rejection(made["acme/torch"], code="never_dispatched", reason="ours", count=12_000)
    rejection(made["other/torch"], code="rate_limited", reason="theirs", last_seen=days_ago(4))
    rejection(code="token_invalid", reason="nobody's", last_seen=days_ago(5))
    return made["acme/torch"]


OURS = (
    "never_dispatched ours",
    "acme/torch id 501 of owner 401 https://token.actions.githubusercontent.com",
    "12,000",
    "5 d ago",
    "3 d ago",
)
THEIRS = (
    "rate_limited theirs",
    "other/torch id 501 of owner 401 https://token.actions.githubusercontent.com",
    "1",
    "5 d ago",
    "4 d ago",
)
NOBODYS = ("token_invalid nobody's", "not proved no configured issuer", "1", "5 d ago", "5 d ago")


def seen_by(client: Client, person: User, **query: Any) -> list[tuple[str, ...]]:
    client.force_login(person)
    answer = client.get(URL, query)
    assert answer.status_code == 200
    return Page(answer).tables.get("", [])


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
def test_who_runs_the_hub_sees_all_newest_first(client: Client, acme: Repository, role: Role) -> None:
    assert seen_by(client, user(role)) == [OURS, THEIRS, NOBODYS]


def test_a_member_sees_their_platforms_only(client: Client, acme: Repository) -> None:
    assert seen_by(client, member_of(acme.platform)) == [OURS]
    other = member_of(Repository.objects.get(full_name="other/torch").platform)
    assert seen_by(client, other) == [THEIRS]
    assert "acme" not in client.get(URL).content.decode()


def test_everyone_else_who_signed_in_sees_none(client: Client, acme: Repository) -> None:
    assert [seen_by(client, person) for person in (user(), user(Role.MAINTAINER))] == [[], []]
    assert "You see those of the platforms you speak for; operators see all." in Page(client.get(URL)).text


def test_a_visitor_is_sent_to_sign_in(client: Client, acme: Repository) -> None:
    answer = client.get(URL)
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/accounts/login/?next={URL}")


def test_hostile_claims_stay_text(client: Client, acme: Repository) -> None:
    rejection(acme, repository_claim="<script>alert(1)</script>", issuer="<script>alert(2)</script>")
    client.force_login(user(Role.OPERATOR))
    html = client.get(URL).content.decode()
    assert "<script>alert" not in html
    assert html.count("&lt;script&gt;alert") == 2


@pytest.mark.parametrize(("page", "rows"), [("1", 50), ("2", 2), ("x", 50)])
def test_fifty_stand_on_a_page(client: Client, acme: Repository, page: str, rows: int) -> None:
    for _ in range(49):
        rejection()
    assert len(seen_by(client, user(Role.OPERATOR), page=page)) == rows


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(("who", "queries"), [("operator", 5), ("member", 7)])
def test_the_page_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, rows: int, who: str, queries: int, django_assert_num_queries: Any
) -> None:
    acme = listed({"acme/torch": 2})["acme/torch"]
    for _ in range(rows):
        rejection(acme)
    client.force_login(user(Role.OPERATOR) if who == "operator" else member_of(acme.platform))
    with django_assert_num_queries(queries):
        assert len(Page(client.get(URL)).tables[""]) == rows
