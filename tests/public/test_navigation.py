"""The header: everyone finds the public pages, and who has more to see finds that too."""

import re

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.console.operations import ROOMS
from tests.factories.listing import listed, member_of, user
from tests.factories.proposals import proposal

pytestmark = pytest.mark.django_db


def test_each_link_is_for_those_who_have_something_there(client: Client) -> None:
    acme = listed({"acme/torch": 1})["acme/torch"]
    people = {
        "visitor": None,
        "user": user(),
        "maintainer": user(Role.MAINTAINER),
        "member": member_of(acme.platform),
        "proposer": proposal().proposer,
        "operator": user(Role.OPERATOR),
        "admin": user(Role.ADMIN),
    }
    links = ("/rejections/", "/console/", "/console/operations/", "/people/", "/console/relay/", "/dispatches/")
    offered: dict[str, set[str]] = {link: set() for link in links}
    for name, person in people.items():
        client.logout()
        if person:
            client.force_login(person)
        html = client.get("/").content.decode()
        assert all(f'href="{url}"' in html for url in ("/", "/platforms/", "/decisions/", "/policy/"))
        for url, seen in offered.items():
            if f'href="{url}"' in html:
                seen.add(name)
    assert offered == {
        "/rejections/": {"member"},
        "/console/": {"maintainer", "member", "proposer", "operator", "admin"},
        "/console/operations/": {"maintainer", "operator", "admin"},
        "/people/": set(),
        "/console/relay/": set(),
        "/dispatches/": set(),
    }


def test_operations_is_marked_in_every_room(client: Client) -> None:
    client.force_login(user(Role.ADMIN))
    rooms = {room.path for room in ROOMS} - {"/console/", "/admin/"}
    marked = {path: re.findall(r'aria-current="(\w+)">([^<]+)<', client.get(path).content.decode()) for path in rooms}
    assert {path for path, found in marked.items() if ("true", "Operations") not in found} == set()
    assert ("page", "Operations") in re.findall(
        r'aria-current="(\w+)">([^<]+)<', client.get("/console/operations/").content.decode()
    )
