"""The header: everyone finds the public pages, and who has more to see finds that too."""

import pytest
from django.test import Client

from apps.accounts.policy import Role
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
    links = ("/rejections/", "/console/", "/people/", "/console/relay/")
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
        "/rejections/": {"member", "operator", "admin"},
        "/console/": {"maintainer", "member", "proposer", "operator", "admin"},
        "/people/": {"admin"},
        "/console/relay/": {"operator", "admin"},
    }
