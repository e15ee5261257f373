"""`/console/`: what waits for a decision, and one's own proposals."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from tests.factories.jobs import days_ago
from tests.factories.listing import listed, member_of, user
from tests.factories.pages import Page
from tests.factories.proposals import accepted, maintainer, proposal, resubmitted, returned, withdrawn
from tests.factories.tests import catalogued
from tests.quarantine.test_services import in_force, moved
from tests.quarantine.test_services import proposed as quarantined

pytestmark = pytest.mark.django_db
URL = "/console/"


def test_the_queue_is_what_waits_longest_waiting_first(client: Client) -> None:
    ada, zoe = maintainer("ada"), user(username="zoe")
    proposal("a/newer", by=zoe, at=days_ago(3), platform_name="A")
    resubmitted(
        returned(proposal("b/again", by=zoe, at=days_ago(9), platform_name="B"), at=days_ago(8)), at=days_ago(6)
    )
    proposal("c/own", by=ada, at=days_ago(5), platform_name="C")
    returned(proposal("d/back", by=zoe, at=days_ago(9), platform_name="D"), at=days_ago(4))
    accepted(proposal("e/listed", by=zoe, at=days_ago(9)))
    withdrawn(proposal("f/gone", by=user(), at=days_ago(9)))
    client.force_login(ada)
    page = Page(client.get(URL))
    assert page.tables == {
        "queue": [
            ("Zephyr NPU b/again", "L1, submission 2", "zoe", "the maintainers", "6 d ago"),
            ("C c/own", "L1", "ada", "another maintainer", "5 d ago"),
            ("A a/newer", "L1", "zoe", "the maintainers", "3 d ago"),
        ],
        "returned": [("D d/back", "zoe", "the vendor", "4 d ago")],
        "mine": [("C c/own", "◔ waiting", "the maintainers", "5 d ago")],
    }
    assert "3 in all, longest waiting first" in page.text


def test_a_vendor_sees_their_own_proposals_only(client: Client) -> None:
    zoe = user(username="zoe")
    proposal("other/torch")
    returned(proposal("a/back", by=zoe, at=days_ago(9), platform_name="A"), at=days_ago(4))
    accepted(proposal("b/listed", by=zoe, at=days_ago(8), platform_name="B"), at=days_ago(3))
    client.force_login(zoe)
    page = Page(client.get(URL))
    assert page.tables == {
        "mine": [("B b/listed", "● accepted", "nobody", "3 d ago"), ("A a/back", "▲ returned", "you", "4 d ago")]
    }
    assert "other/torch" not in page.html


def test_quarantines_stand_in_the_queue_of_whom_they_wait_for(client: Client) -> None:
    both = listed({"kestrel/torch": 2, "osprey/torch": 2})
    kestrel, osprey = both["kestrel/torch"].platform, both["osprey/torch"].platform
    member, stranger, ada = member_of(kestrel), member_of(osprey), maintainer("ada")
    quarantined(kestrel, catalogued("test_proposed"), at=days_ago(5))
    quarantined(None, catalogued("test_unclear"), said="gpu", at=days_ago(6))
    quarantined(kestrel, catalogued("test_nobodys"), owner="maintainers", at=days_ago(7))
    held = in_force(kestrel, catalogued("test_fixed"), at=days_ago(8))
    moved(held, "propose_release", at=days_ago(4), reason="fixed")
    in_force(kestrel, catalogued("test_held"), at=days_ago(3))
    in_force(kestrel, catalogued("test_overdue"), at=days_ago(33))
    moved(quarantined(kestrel, catalogued("test_declined"), at=days_ago(9)), "decline", reason="no")
    here, members, maintainers = f"{kestrel.name}, default", "the platform's members", "the maintainers"
    overdue = (f"test_overdue {here}", "its end: its time is over", "the hub, with its next sweep", "ada", "3 d ago")
    proposed_here = (f"test_proposed {here}", "being put in force, or a refusal", members, "ada", "5 d ago")
    ownerless = (f"test_nobodys {here}", "an owner", maintainers, "maintainers", "7 d ago")
    shown = {}
    for name, who in (("member", member), ("of another", stranger), ("maintainer", ada)):
        client.force_login(who)
        shown[name] = Page(client.get(URL)).tables.get("quarantines", [])
    assert shown == {
        "member": [overdue, ownerless, proposed_here],
        "of another": [],
        "maintainer": [
            overdue,
            ownerless,
            ("test_unclear “gpu”", "its platform's name", maintainers, "ada", "6 d ago"),
            (f"test_fixed {here}", "its release, or a refusal", maintainers, "ada", "4 d ago"),
        ],
    }


def test_what_is_proposed_where_nobody_speaks_for_the_platform_waits_for_the_maintainers(client: Client) -> None:
    kestrel = listed({"kestrel/torch": 2})["kestrel/torch"].platform
    quarantined(kestrel, catalogued("test_proposed"), at=days_ago(5))
    client.force_login(maintainer())
    rows = Page(client.get(URL)).tables["quarantines"]
    assert [row[1:3] for row in rows] == [("being put in force, or a refusal", "the maintainers")]


def test_an_empty_console_says_what_will_appear(client: Client) -> None:
    client.force_login(user())
    page = Page(client.get(URL))
    assert page.tables == {}
    assert "What you propose appears here" in page.text
    assert "/register/" in page.links
    client.force_login(maintainer())
    assert "Proposals that wait for you appear here" in Page(client.get(URL)).text


def test_the_header_leads_there_whoever_has_something_there(client: Client) -> None:
    vendor = user()
    proposal(by=vendor)
    people = {
        "visitor": None,
        "user": user(),
        "vendor": vendor,
        "operator": user(Role.OPERATOR),
        "maintainer": user(Role.MAINTAINER),
        "admin": user(Role.ADMIN),
    }
    offered = set()
    for name, person in people.items():
        client.logout()
        if person:
            client.force_login(person)
        if f'href="{URL}"' in client.get("/policy/").content.decode():
            offered.add(name)
    assert offered == {"vendor", "operator", "maintainer", "admin"}


def test_the_queue_has_pages(client: Client) -> None:
    for number in range(51):
        proposal(f"a/torch-{number:02}", at=days_ago(3))
    client.force_login(maintainer())
    page = Page(client.get(URL))
    assert (len(page.tables["queue"]), "?page=2" in page.links) == (50, True)
    assert len(Page(client.get(URL, {"page": "2"})).tables["queue"]) == 1


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, rows: int, django_assert_num_queries: Any
) -> None:
    ada = maintainer()
    for number in range(rows):
        proposal(f"mine/{number}", by=ada)
        returned(proposal(f"back/{number}"))
        quarantined(None, catalogued(f"test_{number}"), said="gpu", at=days_ago(3))
    client.force_login(ada)
    with django_assert_num_queries(12):
        tables = Page(client.get(URL)).tables
    assert [len(tables[name]) for name in ("queue", "returned", "mine", "quarantines")] == [rows] * 4
    vendor = user()
    for number in range(rows):
        proposal(f"vendor/{number}", by=vendor)
    client.force_login(vendor)
    with django_assert_num_queries(7):
        assert len(Page(client.get(URL)).tables["mine"]) == rows
