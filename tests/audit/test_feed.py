"""`/decisions/feed/`: the newest decisions as Atom, with the page's filters."""

import datetime
from typing import Any
from xml.etree import ElementTree

import pytest
from django.test import Client
from pytest_django import Settings

from apps.audit.enums import Action, ActorKind
from apps.audit.services import Actor, Subject
from tests.factories.events import event
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
ATOM = "{http://www.w3.org/2005/Atom}"
AT = datetime.datetime(2026, 11, 2, 12, tzinfo=datetime.UTC)


def feed(client: Client, **query: Any) -> ElementTree.Element:
    answer = client.get("/decisions/feed/", query)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/atom+xml; charset=utf-8")
    return ElementTree.fromstring(answer.content)  # noqa: S314  our own


def titles(client: Client, **query: Any) -> list[str | None]:
    return [entry.findtext(f"{ATOM}title") for entry in feed(client, **query).iter(f"{ATOM}entry")]


@pytest.fixture
def log() -> None:
    event("one", now=AT, reason="60 days green")
    event("hidden", is_decision=False, now=AT)
    kestrel = Subject("platform", "kestrel", "Kestrel NPU")
    event("two", subject=kestrel, action=Action.PLATFORM_RENAMED, actor=Actor(ActorKind.USER, "u-2", "bob"))


@pytest.mark.usefixtures("log")
def test_an_entry_says_what_was_decided_by_whom_and_why(client: Client, settings: Settings) -> None:
    found = feed(client)
    one = found.findall(f"{ATOM}entry")[-1]
    link = one.find(f"{ATOM}link")
    category = one.find(f"{ATOM}category")
    assert link is not None
    assert category is not None
    assert {each.tag.removeprefix(ATOM): each.text for each in one if each.tag != f"{ATOM}author"} == {
        "title": "one",
        "link": None,
        "published": "2026-11-02T12:00:00+00:00",
        "updated": "2026-11-02T12:00:00+00:00",
        "id": f"{settings.BASE_URL}/decisions/1/",
        "summary": "60 days green",
        "category": None,
    }
    assert (link.get("href"), category.get("term")) == (f"{settings.BASE_URL}/decisions/1/", "Level changed")
    assert one.findtext(f"{ATOM}author/{ATOM}name") == "ada"
    links = {each.get("rel"): each.get("href") for each in found.findall(f"{ATOM}link")}
    assert links == {
        "alternate": f"{settings.BASE_URL}/decisions/",
        "self": f"{settings.BASE_URL}/decisions/feed/",
    }


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["two", "one"]),
        ({"about": "kestrel"}, ["two"]),
        ({"subject": "repository"}, ["one"]),
        ({"action": "platform.renamed"}, ["two"]),
        ({"actor": "ada"}, ["one"]),
        ({"until": "2026-11-02"}, ["one"]),
        ({"about": "nobody"}, []),
    ],
)
def test_the_filters_are_those_of_the_page(client: Client, query: dict[str, str], found: list[str]) -> None:
    assert titles(client, **query) == found


@pytest.mark.parametrize("query", [{"since": "x"}, {"subject": "token"}, {"action": "user.role_granted"}])
def test_a_filter_that_cannot_be_read_is_refused(client: Client, query: dict[str, str]) -> None:
    answer = client.get("/decisions/feed/", query)
    assert answer.status_code == 400
    assert next(iter(query)) in Page(answer).text


def test_it_has_the_newest_fifty(client: Client) -> None:
    for number in range(51):
        event(f"decision {number}")
    assert titles(client) == [f"decision {number}" for number in range(50, 0, -1)]


def test_text_that_xml_cannot_hold_does_not_break_it(client: Client) -> None:
    event("a\x0bb <b>&amp;</b>\u202e", reason="\x1b[31m")
    (entry,) = feed(client).findall(f"{ATOM}entry")
    assert entry.findtext(f"{ATOM}title") == "a\ufffdb <b>&amp;</b>\ufffd"
    assert entry.findtext(f"{ATOM}summary") == "\ufffd[31m"


@pytest.mark.usefixtures("log")
def test_the_page_leads_to_it_with_its_filters(client: Client) -> None:
    assert "/decisions/feed/" in Page(client.get("/decisions/")).links
    page = Page(client.get("/decisions/", {"subject": "platform", "about": "kestrel"}))
    assert "/decisions/feed/?subject=platform&about=kestrel" in page.links
    assert '<link rel="alternate" type="application/atom+xml"' in page.html


@pytest.mark.parametrize("rows", [1, 3])
def test_it_asks_once_however_many_there_are(client: Client, rows: int, django_assert_num_queries: Any) -> None:
    for _ in range(rows):
        event()
    with django_assert_num_queries(1):
        titles(client)
