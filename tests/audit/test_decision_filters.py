"""`/decisions/`: about whom, what, by whom and when; never more than the public decisions."""

import datetime
from typing import Any

import pytest
from django.test import Client

from apps.audit.enums import Action, ActorKind
from apps.audit.forms import DECISIVE, SUBJECTS
from apps.audit.services import Actor, Subject
from tests.factories.events import event
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = "/decisions/"
ADA, BOB = Actor(ActorKind.USER, "u-1", "ada"), Actor(ActorKind.COMMAND, "", "operator, by manage.py")


def at(day: int, hour: int = 12) -> datetime.datetime:
    return datetime.datetime(2026, 11, day, hour, 59, 59, 999_999, tzinfo=datetime.UTC)


@pytest.fixture
def log() -> None:
    acme, kestrel = Subject("repository", "r-1", "acme/torch"), Subject("platform", "p-1", "Kestrel NPU")
    event("one", subject=acme, actor=ADA, now=at(1))
    event("two", subject=kestrel, actor=BOB, now=at(2, 0), action=Action.PLATFORM_RENAMED)
    event("three", subject=acme, actor=BOB, now=at(2, 23))
    event("hidden", subject=acme, actor=ADA, now=at(3), action=Action.ROLE_GRANTED, is_decision=False)
    event("four", subject=kestrel, actor=ADA, now=at(4))


def shown(client: Client, **query: Any) -> list[str]:
    answer = client.get(URL, query)
    assert answer.status_code == 200
    return [text.split(" by ")[0] for text in Page(answer).items.get("", []) if " by " in text]


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["four", "three", "two", "one"]),
        ({"about": "ACME"}, ["three", "one"]),
        ({"about": "kestrel npu"}, ["four", "two"]),
        ({"about": "_"}, []),
        ({"subject": "platform"}, ["four", "two"]),
        ({"subject": "repository", "actor": "ada"}, ["one"]),
        ({"action": "platform.renamed"}, ["two"]),
        ({"actor": "ad"}, ["four", "one"]),
        ({"actor": "manage.py", "about": "acme"}, ["three"]),
        ({"since": "2026-11-02"}, ["four", "three", "two"]),
        ({"until": "2026-11-02"}, ["three", "two", "one"]),
        ({"since": "2026-11-02", "until": "2026-11-02"}, ["three", "two"]),
        ({"since": "0001-01-01", "until": "9999-12-31"}, ["four", "three", "two", "one"]),
        ({"about": "nobody"}, []),
    ],
)
def test_the_list_shows_the_decisions_that_fit(client: Client, query: dict[str, str], found: list[str]) -> None:
    assert shown(client, **query) == found


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"since": "yesterday"}, "■ Write a day as 2026-11-30."),
        ({"since": "2026-11-04", "until": "2026-11-03"}, "■ Give a day that is not before “From”."),
        (
            {"action": "user.role_granted"},
            "■ Select a valid choice. user.role_granted is not one of the available choices.",
        ),
        ({"actor": "a\0"}, "■ Null characters are not allowed."),
    ],
)
def test_what_cannot_be_read_is_said_and_filters_nothing(client: Client, query: dict[str, str], said: str) -> None:
    assert said in Page(client.get(URL, query)).text
    kept = {"since": "2026-11-04"} if "until" in query else {}
    assert shown(client, **query) == shown(client, **kept)


def test_only_what_can_be_a_decision_is_offered() -> None:
    assert {"user"} & set(SUBJECTS) == set()
    assert {"repository", "platform", "quarantine", "proposal"} <= set(SUBJECTS)
    assert {Action.ROLE_GRANTED, Action.TOKEN_CREATED, Action.MEMBER_ADDED} & set(DECISIVE) == set()
    assert {Action.LEVEL_CHANGED, Action.REPOSITORY_LISTED, Action.PLATFORM_RENAMED} <= set(DECISIVE)


@pytest.mark.usefixtures("log")
def test_nothing_found_is_not_an_empty_log(client: Client) -> None:
    page = Page(client.get(URL, {"about": "nobody"}))
    assert "No decision fits these filters" in page.text
    assert "0 decisions" in page.text


def test_htmx_gets_the_list_alone_and_pages_keep_the_filters(client: Client) -> None:
    for number in range(51):
        event(f"decision {number}")
    answer = client.get(URL, {"about": "acme"}, headers={"HX-Request": "true", "HX-Target": "log"})
    html = answer.content.decode()
    assert html.strip().startswith('<div id="log">')
    assert 'href="?about=acme&amp;page=2" hx-get="?about=acme&amp;page=2" hx-target="#log" hx-push-url="true"' in html
    assert shown(client, about="acme", page="99") == ["decision 0"]


@pytest.mark.parametrize("rows", [1, 3])
def test_a_filtered_page_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, rows: int, django_assert_num_queries: Any
) -> None:
    for _ in range(rows):
        event()
    with django_assert_num_queries(3):
        assert (
            len(shown(client, about="acme", actor="ada", since="2020-01-01", action="repository.level_changed")) == rows
        )
