"""Pages of quarantines, by who may see and do what."""

import datetime
import html
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.clock import now
from apps.quarantine import services
from apps.quarantine.enums import State, Verb
from apps.quarantine.models import Quarantine
from tests.factories.listing import TESTS, listed, member_of, user
from tests.factories.pages import Page
from tests.factories.tests import catalogued
from tests.quarantine.test_services import in_force, platform, proposed

pytestmark = pytest.mark.django_db
DAY = datetime.timedelta(days=1)


def signed_in(who: Any = None) -> Client:
    client = Client()
    if who is not None:
        client.force_login(who)
    return client


def page(path: str, who: Any = None) -> Page:
    return Page(signed_in(who).get(path))


def post(path: str, who: Any, verb: Verb, revision: int = 1, **fields: Any) -> Any:
    said = {f"{verb.value}-{name}": value for name, value in fields.items()}
    return signed_in(who).post(path, {"act": verb.value, f"{verb.value}-revision": revision} | said)


@pytest.mark.parametrize("count", [1, 3])
def test_the_list_costs_the_same_however_long(count: int, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    kestrel = platform()
    for number in range(count):
        in_force(kestrel, catalogued(f"test_{number}"), at=now())
    client = Client()
    with django_assert_num_queries(6):
        answer = client.get("/quarantines/")
    shown = Page(answer)
    assert [name for name in ("test_0", "test_2") if name in shown.text] == ["test_0", "test_2"][: (count + 1) // 2]


def test_overdue_stands_first_then_what_is_open_then_what_ended() -> None:
    kestrel, moment = platform(), now()
    ended = in_force(kestrel, catalogued("test_ended"), at=moment - DAY * 20)
    services.end(quarantine=ended, verb=Verb.BREAK, reason="fails always", actor=TESTS, now=moment - DAY)
    in_force(kestrel, catalogued("test_open"), at=moment)
    in_force(kestrel, catalogued("test_overdue"), at=moment - DAY * 31)
    text = page("/quarantines/").text
    places = [text.index(name) for name in ("test_overdue", "test_open", "test_ended")]
    assert places == sorted(places)
    assert "overdue" in text
    narrowed = page("/quarantines/?state=broken").text
    assert ("test_ended" in narrowed, "test_open" in narrowed) == (True, False)


def test_below_l2_and_without_a_platform_they_are_nobodys_but_theirs() -> None:
    kestrel = platform(level=1)
    secret = proposed(kestrel, catalogued("test_secret"))
    unclear = proposed(None, catalogued("test_unclear"), said="gpu")
    member, stranger, maintainer = member_of(kestrel), user(), user(Role.MAINTAINER)
    seen = {}
    for name, who in (("visitor", None), ("stranger", stranger), ("member", member), ("maintainer", maintainer)):
        text = page("/quarantines/", who).text
        answers = [signed_in(who).get(f"/quarantines/{one.public_id}/").status_code for one in (secret, unclear)]
        seen[name] = ("test_secret" in text, "test_unclear" in text, answers)
    assert seen == {
        "visitor": (False, False, [404, 404]),
        "stranger": (False, False, [404, 404]),
        "member": (True, False, [200, 404]),
        "maintainer": (True, True, [200, 200]),
    }


def test_a_member_proposes_in_bulk_and_puts_it_in_force_within_the_cap() -> None:
    kestrel = platform()
    member = member_of(kestrel)
    tests = [catalogued(f"test_{number}") for number in range(3)]
    form = {
        "variant": "default",
        "tests": f"{tests[0].pk}\n{tests[1].pk}, {tests[2].pk}",
        "reason_class": "timing",
        "reason": "they race",
        "owner": "ada",
    }
    answer = signed_in(member).post(f"/platforms/{kestrel.slug}/quarantines/new/", form)
    made = Quarantine.objects.get()
    path = f"/quarantines/{made.public_id}/"
    assert (answer.status_code, answer["Location"], made.state, made.tests) == (302, path, State.PROPOSED, 3)
    assert post(path, member, Verb.PUT_IN_FORCE).status_code == 302
    made.refresh_from_db()
    assert (made.state, made.source) == (State.IN_FORCE, "vendor")
    shown = page(path)
    assert all(
        name in shown.text for name in ("test_0", "test_1", "test_2", "they race", "ada", "Quarantine put in force")
    )


@pytest.mark.parametrize("who", ["visitor", "stranger", "member of another"])
def test_strangers_change_nothing_and_are_not_echoed(who: str) -> None:
    both = listed({"kestrel/torch": 2, "osprey/torch": 2})
    kestrel = both["kestrel/torch"].platform
    made = proposed(kestrel, catalogued("test_a"))
    people: dict[str, Callable[[], Any]] = {
        "visitor": lambda: None,
        "stranger": user,
        "member of another": lambda: member_of(both["osprey/torch"].platform),
    }
    person = people[who]()
    before = (Quarantine.objects.values().get(), Event.objects.count())
    word = "look-at-me-4711"
    answers = [
        post(f"/quarantines/{made.public_id}/", person, Verb.DECLINE, reason=word),
        signed_in(person).post(f"/platforms/{kestrel.slug}/quarantines/new/", {"reason": word, "tests": "1"}),
    ]
    assert [answer.status_code for answer in answers] == [403, 302 if person is None else 403]
    assert all(word not in answer.content.decode() for answer in answers)
    assert (Quarantine.objects.values().get(), Event.objects.count()) == before


def test_a_member_neither_refuses_nor_grants_a_release() -> None:
    kestrel = platform()
    made = in_force(kestrel, catalogued("test_a"), at=now())
    path, member, maintainer = f"/quarantines/{made.public_id}/", member_of(kestrel), user(Role.MAINTAINER)
    assert post(path, member, Verb.PROPOSE_RELEASE, made.revision, reason="fixed").status_code == 302
    refused = post(path, member, Verb.RELEASE, made.revision + 1, reason="I say so")
    assert "a maintainer may" in refused.content.decode()
    made.refresh_from_db()
    assert made.state == State.RELEASE_PROPOSED
    unproven = post(path, maintainer, Verb.RELEASE, made.revision, reason="20 passes")
    assert "20 more executed passes" in unproven.content.decode()
    made.refresh_from_db()
    assert made.state == State.RELEASE_PROPOSED
    said = {"reason": "it should never have been there", "unproven": "on"}
    assert post(path, maintainer, Verb.RELEASE, made.revision, **said).status_code == 302
    made.refresh_from_db()
    assert made.state == State.RELEASED
    summary = body_of(Event.objects.latest("seq"))["summary"]
    assert summary.startswith("Released (without proof: 0 of 20 passes, 0 red): ")


def test_who_looked_at_an_earlier_state_is_told_to_look_again() -> None:
    kestrel = platform()
    made = in_force(kestrel, catalogued("test_a"), at=now())
    path, member = f"/quarantines/{made.public_id}/", member_of(kestrel)
    answer = post(path, member, Verb.RENEW, 1, reason="again")
    assert "Look at the quarantine again" in answer.content.decode()
    assert post(path, member, Verb.RENEW, made.revision, reason="the driver is late").status_code == 302


def test_hostile_words_are_shown_as_words() -> None:
    kestrel = platform()
    made = proposed(
        kestrel,
        catalogued("test_<script>alert(1)</script>"),
        reason="<img src=x>",
        owner="<wbr>",
        issue_url="https://x.example/?<",
    )
    body = signed_in().get(f"/quarantines/{made.public_id}/").content.decode()
    hostile = ("<script>alert", "<img src=x>", "<wbr>", "example/?<")
    assert [text in body for text in hostile] == [False] * 4
    assert [text in html.unescape(body) for text in hostile] == [True] * 4


def test_an_unknown_act_is_not_found() -> None:
    kestrel = platform()
    made = proposed(kestrel, catalogued("test_a"))
    answer = signed_in(member_of(kestrel)).post(f"/quarantines/{made.public_id}/", {"act": "forget"})
    assert answer.status_code == 404
