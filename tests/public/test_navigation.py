"""The header: everyone finds the public pages, and who may see refused callbacks finds them too."""

import pytest
from django.test import Client

from apps.accounts.policy import Role
from tests.factories.listing import listed, member_of, user

pytestmark = pytest.mark.django_db


def test_the_link_to_refused_callbacks_is_for_those_who_may_see_some(client: Client) -> None:
    acme = listed({"acme/torch": 1})["acme/torch"]
    people = {
        "visitor": None,
        "user": user(),
        "maintainer": user(Role.MAINTAINER),
        "member": member_of(acme.platform),
        "operator": user(Role.OPERATOR),
        "admin": user(Role.ADMIN),
    }
    offered = set()
    for name, person in people.items():
        client.logout()
        if person:
            client.force_login(person)
        html = client.get("/").content.decode()
        assert all(f'href="{url}"' in html for url in ("/", "/platforms/", "/decisions/", "/policy/"))
        if 'href="/rejections/"' in html:
            offered.add(name)
    assert offered == {"member", "operator", "admin"}


def test_the_link_beside_the_relay_is_for_who_runs_the_hub(client: Client) -> None:
    offered = set()
    for role in (None, Role.MAINTAINER, Role.OPERATOR, Role.ADMIN):
        client.force_login(user(role))
        if 'href="/console/relay/"' in client.get("/").content.decode():
            offered.add(role)
    assert offered == {Role.OPERATOR, Role.ADMIN}
