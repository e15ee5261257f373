"""`/platforms/<slug>/name/`: an imported platform gets the name that people know."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.platforms.models import Platform
from tests.factories.listing import listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
URL = reverse("platforms:rename", args=["acme-torch"])


@pytest.fixture
def maintainer(client: Client) -> Client:
    client.force_login(user(Role.MAINTAINER, username="ada"))
    return client


@pytest.fixture(autouse=True)
def _platforms(db: None) -> None:
    listed({"acme/torch": 1, "other/torch": 1})


def names() -> list[tuple[str, str]]:
    return list(Platform.objects.order_by("pk").values_list("name", "slug"))


UNCHANGED = [("torch", "acme-torch"), ("torch", "other-torch")]


def rename(client: Client, **values: Any) -> Any:
    return client.post(URL, {"name": "Acme NPU", "slug": "acme-npu"} | values)


def test_the_form_begins_with_the_name_as_it_is(maintainer: Client) -> None:
    page = Page(maintainer.get(URL))
    assert page.heading == "Rename torch"
    assert 'name="name" value="torch"' in page.html
    assert 'name="slug" value="acme-torch"' in page.html


def test_a_new_name_is_a_public_decision(maintainer: Client) -> None:
    answer = rename(maintainer)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/platforms/acme-npu/")
    assert names() == [("Acme NPU", "acme-npu"), ("torch", "other-torch")]
    event = Event.objects.first()
    assert event is not None
    body = body_of(event)
    assert {name: body[name] for name in ("action", "summary", "before", "after", "is_decision")} == {
        "action": "platform.renamed",
        "summary": "torch is now called Acme NPU",
        "before": {"name": "torch", "slug": "acme-torch"},
        "after": {"name": "Acme NPU", "slug": "acme-npu"},
        "is_decision": True,
    }
    assert body["actor"]["label"] == "ada"


def test_the_same_name_writes_nothing(maintainer: Client) -> None:
    before = Event.objects.count()
    assert rename(maintainer, name="torch", slug="acme-torch").status_code == 302
    assert (names(), Event.objects.count()) == (UNCHANGED, before)


def test_a_slug_is_lower_case(maintainer: Client) -> None:
    assert rename(maintainer, slug="Acme-NPU").headers["Location"] == "/platforms/acme-npu/"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"slug": "other-torch"}, "slug: 'other-torch' is taken, choose another."),
        ({"slug": "OTHER-torch"}, "slug: 'other-torch' is taken, choose another."),
        ({"slug": "-_-"}, "name and slug: both need at least one letter or digit."),
        ({"slug": "two words"}, "Enter a valid “slug” consisting of letters, numbers, underscores or hyphens."),
        ({"slug": "x" * 81}, "Ensure this value has at most 80 characters (it has 81)."),
        ({"name": " "}, "This field is required."),
        ({"name": "x" * 101}, "Ensure this value has at most 100 characters (it has 101)."),
        ({"name": "a\0b"}, "Null characters are not allowed."),
    ],
)
def test_a_name_that_cannot_be_given_is_said_on_the_form(
    maintainer: Client, values: dict[str, str], words: str
) -> None:
    answer = rename(maintainer, **values)
    assert (answer.status_code, words in Page(answer).text) == (200, True)
    assert names() == UNCHANGED


def test_a_hostile_name_stays_text(maintainer: Client) -> None:
    rename(maintainer, name="<script>alert(1)</script>")
    for url in ("/", "/platforms/", "/platforms/acme-npu/", "/decisions/", "/platforms/acme-npu/name/"):
        html = maintainer.get(url).content.decode()
        assert "&lt;script&gt;alert(1)" in html
        assert "<script>alert(1)" not in html


def test_only_who_may_rename_does(client: Client) -> None:
    assert client.get(URL).headers["Location"] == f"/accounts/login/?next={URL}"
    assert rename(client).status_code == 302
    platform = Platform.objects.get(slug="acme-torch")
    for person in (member_of(platform), user(Role.OPERATOR)):
        client.force_login(person)
        assert [client.get(URL).status_code, rename(client).status_code] == [403, 403]
    assert names() == UNCHANGED


def test_an_unknown_platform_is_not_found(maintainer: Client) -> None:
    assert maintainer.get("/platforms/nobody/name/").status_code == 404
