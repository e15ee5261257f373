"""A platform declares whose working days its deadlines are counted in: page, API and decision."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.platforms.calendars import declare_calendar
from apps.platforms.models import Platform
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
PAGE, API = "/platforms/zephyr-torch/calendar/", "/api/v1/platforms/zephyr-torch/calendar/"


@pytest.fixture
def zephyr() -> Platform:
    return listed({"zephyr/torch": 2})["zephyr/torch"].platform


def declared() -> list[tuple[Any, ...]]:
    found = Event.objects.filter(action="platform.calendar_declared").order_by("seq")
    return [(body["summary"], body["before"], body["after"]) for body in map(body_of, found)]


def test_a_member_declares_it_on_the_page_and_it_is_a_public_decision(zephyr: Platform, client: Client) -> None:
    client.force_login(member_of(zephyr, username="zoe"))
    answer = client.post(PAGE, {"calendar": "de-by"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/platforms/zephyr-torch/")
    words = "Deadlines of torch are counted in working days of DE-BY"
    assert declared() == [(words, {"calendar": ""}, {"calendar": "DE-BY"})]
    assert 'value="DE-BY"' in client.get(PAGE).content.decode()
    page = client.get("/platforms/zephyr-torch/").content.decode()
    assert "deadlines in working days of DE-BY" in page
    assert PAGE in page


def test_a_calendar_that_does_not_exist_is_refused_on_the_page(zephyr: Platform, client: Client) -> None:
    client.force_login(user(Role.MAINTAINER))
    answer = client.post(PAGE, {"calendar": "ATLANTIS"})
    assert "calendar: saw &#x27;ATLANTIS&#x27;" in Page(answer).html
    assert (Platform.objects.get().calendar, declared()) == ("", [])


def test_programs_declare_it_too(zephyr: Platform, client: Client) -> None:
    client.force_login(member_of(zephyr))
    for code, words in [("CN", "working days of CN"), ("", "working days, Monday to Friday")]:
        answer = client.post(API, {"calendar": code}, content_type="application/json")
        assert (answer.status_code, answer.json()) == (
            200,
            {"platform": "zephyr-torch", "calendar": code, "words": words},
        )
    answer = client.post(API, {"calendar": "QQ"}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (400, "malformed", "calendar")


def test_who_is_neither_member_nor_maintainer_declares_nothing(zephyr: Platform, client: Client) -> None:
    client.force_login(user())
    assert client.post(PAGE, {"calendar": "CN"}).status_code == 403
    answer = client.post(API, {"calendar": "CN"}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "not_permitted")
    assert Platform.objects.get().calendar == ""


def test_the_same_again_writes_nothing(zephyr: Platform) -> None:
    assert declare_calendar(platform=zephyr, calendar="CN", actor=TESTS, now=now()) is not None
    assert declare_calendar(platform=zephyr, calendar="cn", actor=TESTS, now=now()) is None
    assert len(declared()) == 1
