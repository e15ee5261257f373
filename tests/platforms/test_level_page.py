"""`/repositories/<owner>/<name>/level/`: a maintainer sees what a change would do, and makes it."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.platforms.models import Repository
from apps.platforms.policy import LEVELS, consequences, direct_targets
from tests.factories.listing import listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = reverse("platforms:level", args=["acme", "torch"])


@pytest.fixture
def maintainer(client: Client) -> Client:
    client.force_login(user(Role.MAINTAINER, username="ada"))
    return client


def at(level: int, **options: Any) -> Repository:
    return listed({"acme/torch": (level, options)})["acme/torch"]


def decide(client: Client, **values: Any) -> Any:
    return client.post(URL, {"level": "2", "reason": "60 days green", "expected_level": "1"} | values)


def state() -> tuple[int, str, int]:
    """(level, device, decisions in the log)"""
    repository = Repository.objects.get()
    return repository.level, repository.device, Event.objects.filter(is_decision=True).count()


def last() -> Event:
    event = Event.objects.first()
    assert event is not None
    return event


@pytest.mark.parametrize(
    ("level", "query", "shown"),
    [(0, "", 1), (1, "", 2), (1, "0", 0), (2, "", 1), (2, "4", 1), (2, "x", 1), (3, "", 2), (4, "", 3), (4, "0", 0)],
)
def test_the_page_shows_what_one_change_would_do(maintainer: Client, level: int, query: str, shown: int) -> None:
    at(1)
    at(level)
    page = Page(maintainer.get(URL, {"to": query} if query else {}))
    assert page.heading == "Change the level of acme/torch"
    assert page.tables == {"effect": [(row.title, row.before, row.after) for row in consequences(level, shown)]}
    assert f"L{level} → {LEVELS[shown].code}" in page.text
    assert f'name="level" value="{shown}"' in page.html
    assert f'name="expected_level" value="{level}"' in page.html
    assert [link for link in page.links if link.startswith("?to=")] == [
        f"?to={target.number}" for target in direct_targets(level)
    ]


def test_a_decision_takes_effect_at_once(maintainer: Client) -> None:
    repository = at(1)
    answer = decide(maintainer, evidence="  https://example.org/report  ")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/platforms/acme-torch/")
    assert state() == (2, "", 2)
    event = last()
    first, second = repository.level_intervals.order_by("pk")
    assert (first.level, first.ended_at) == (1, event.at)
    assert (second.level, second.started_at, second.ended_at, second.event_seq) == (2, event.at, None, event.seq)
    body = body_of(event)
    ada = str(User.objects.get(username="ada").public_id)
    assert {name: body[name] for name in body if name not in ("at", "seq", "format")} == {
        "action": "repository.level_changed",
        "actor": {"kind": "user", "id": ada, "label": "ada"},
        "subject": {"kind": "repository", "id": str(repository.public_id), "label": "acme/torch"},
        "summary": "acme/torch raised from L1 to L2",
        "before": {"level": "L1", "device": "", "oncalls": [], "events": ["nightly", "pull_request"]},
        "after": {"level": "L2", "device": "", "oncalls": [], "events": ["nightly", "pull_request"]},
        "reason": "60 days green",
        "evidence": {"text": "https://example.org/report"},
        "is_decision": True,
    }


def test_the_next_page_says_what_was_decided(maintainer: Client) -> None:
    at(1)
    decide(maintainer)
    page = Page(maintainer.get("/platforms/acme-torch/"))
    assert page.items[""][0] == f"● Decision #{last().seq}: acme/torch is now at L2."
    assert page.items["decisions"][0].startswith("acme/torch raised from L1 to L2 by ada")


def test_from_l4_to_l3_a_device_is_named(maintainer: Client) -> None:
    at(4)
    answer = decide(maintainer, level="3", expected_level="4")
    assert (answer.status_code, "This field is required." in Page(answer).text) == (200, True)
    assert state() == (4, "", 1)
    assert decide(maintainer, level="3", expected_level="4", device="npu").status_code == 302
    assert state() == (3, "npu", 2)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"reason": ""}, "This field is required."),
        ({"reason": "  \n "}, "This field is required."),
        ({"reason": "x" * 2_001}, "Ensure this value has at most 2000 characters (it has 2001)."),
        ({"reason": "a\0b"}, "Null characters are not allowed."),
        ({"level": "3"}, "Select a valid choice. 3 is not one of the available choices."),
        ({"level": "1"}, "Select a valid choice. 1 is not one of the available choices."),
        ({"level": "\0"}, "Select a valid choice."),
    ],
)
def test_what_cannot_be_decided_is_said_on_the_form(maintainer: Client, values: dict[str, str], words: str) -> None:
    at(1)
    answer = decide(maintainer, **values)
    assert answer.status_code == 200
    assert words in Page(answer).text
    assert state() == (1, "", 1)


@pytest.mark.parametrize("expected", ["0", "7", "", "x"])
def test_who_decided_on_another_level_than_the_one_it_has_decided_nothing(maintainer: Client, expected: str) -> None:
    at(1)
    answer = decide(maintainer, expected_level=expected)
    assert (answer.status_code, state()) == (409, (1, "", 1))
    assert "acme/torch is at L1 now: look again, then decide." in Page(answer).text


def test_what_was_written_stays_on_the_form(maintainer: Client) -> None:
    at(1)
    html = decide(maintainer, expected_level="0", reason="<b>long</b> thought").content.decode()
    assert "&lt;b&gt;long&lt;/b&gt; thought</textarea>" in html


def test_who_decided_on_an_old_level_sees_the_new_one_and_may_decide_again(maintainer: Client) -> None:
    at(1)
    at(2)
    page = Page(decide(maintainer, level="0", expected_level="1"))
    assert "acme/torch is at L2 now: look again, then decide." in page.text
    assert page.tables == {"effect": [(row.title, row.before, row.after) for row in consequences(2, 0)]}
    assert 'name="expected_level" value="2"' in page.html
    assert decide(maintainer, level="0", expected_level="2").status_code == 302
    assert state() == (0, "", 3)


def test_a_visitor_is_sent_to_sign_in(client: Client) -> None:
    at(1)
    for answer in (client.get(f"{URL}?to=2"), decide(client)):
        assert answer.status_code == 302
        assert answer.headers["Location"].startswith("/accounts/login/?next=/repositories/acme/torch/level/")
    assert state() == (1, "", 1)


def test_a_vendor_and_an_operator_get_a_page_that_says_no(client: Client) -> None:
    repository = at(1)
    for person in (member_of(repository.platform), user(Role.OPERATOR)):
        client.force_login(person)
        before = state()
        for answer in (client.get(URL), decide(client)):
            assert answer.status_code == 403
            assert Page(answer).heading == "Not permitted"
            assert "This needs the permission level:change." in Page(answer).text
        assert state() == before


@pytest.mark.parametrize("name", ["other", "torch%00", "\u00e9"])
def test_an_unknown_repository_is_not_found(maintainer: Client, name: str) -> None:
    at(1)
    assert maintainer.get(f"/repositories/acme/{name}/level/").status_code == 404


def test_another_site_cannot_decide(client: Client) -> None:
    at(1)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user(Role.MAINTAINER))
    before = state()
    answer = decide(strict)
    assert (answer.status_code, Page(answer).heading) == (403, "The form has expired")
    assert state() == before
