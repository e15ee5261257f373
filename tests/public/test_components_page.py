"""`/staff/components/`: every component in every state, for those with a granted role."""

import re
from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import GRANTABLE, Role
from apps.core.templatetags.hub import STATUS, TONES, TRUST
from tests.factories.listing import listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = "/staff/components/"


@pytest.mark.parametrize("role", GRANTABLE)
def test_every_granted_role_sees_it(client: Client, role: Role) -> None:
    client.force_login(user(role))
    assert client.get(URL).status_code == 200


def test_others_do_not(client: Client) -> None:
    member = member_of(listed({"acme/torch": 1})["acme/torch"].platform)
    assert client.get(URL).headers["Location"] == f"/accounts/login/?next={URL}"
    for person in (user(), member):
        client.force_login(person)
        assert client.get(URL).status_code == 403


@pytest.fixture
def html(client: Client) -> str:
    client.force_login(user(Role.MAINTAINER))
    return client.get(URL).content.decode()


def test_it_shows_every_state_label_and_tone(html: str) -> None:
    assert [word for word in STATUS if f"</span> {word.replace('_', ' ')}</span>" not in html] == []
    assert [label for label in TRUST if f"</span> {label}</span>" not in html] == []
    assert [tone for tone in TONES if f'<div class="banner {tone}">' not in html] == []
    assert sorted(set(re.findall(r'<svg class="drawn ([\w ]+)"', html))) == [
        "burn", "burn none", "spark", "spark none", "stack", "stack none", "strip", "strip none",
    ]  # fmt: skip


def test_no_id_stands_twice(html: str) -> None:
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert sorted(ids) == sorted(set(ids))


def test_its_live_part_is_answered_304_and_its_list_is_a_fragment(client: Client, html: str) -> None:
    assert "<script>alert" not in html
    tag = re.search(r"If-None-Match&quot;: &quot;(W/\\&quot;\w+\\&quot;)&quot;", html)
    assert tag is not None
    asked = {"HX-Request": "true", "HX-Target": "alive", "If-None-Match": tag[1].replace("\\&quot;", '"')}
    assert client.get(URL, headers=asked).status_code == 304
    asked["If-None-Match"] = 'W/"old"'
    fresh = client.get(URL, headers=asked)
    assert (fresh.status_code, fresh.headers["Cache-Control"]) == (200, "no-store")
    assert fresh.content.decode().strip().startswith('<p id="alive"')
    listed_again = client.get(URL, {"page": 3}, headers={"HX-Request": "true", "HX-Target": "sample"})
    assert "101 to 130 of 130" in Page(_within_main(listed_again.content)).text


def _within_main(content: bytes) -> Any:
    return type("Answer", (), {"content": b"<main>" + content + b"</main>"})()
