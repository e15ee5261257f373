"""What a platform reported at L1 is seen by its members, and by nobody else."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.platforms.models import Platform, Repository
from tests.factories.jobs import callback, days_ago
from tests.factories.listing import listed, member_of, user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db

HIDDEN = "hush-workflow"
PAGES = ("/", "/platforms/", "/platforms/acme-torch/", "/platforms/other-torch/", "/decisions/", "/policy/")


@pytest.fixture
def acme() -> Platform:
    """A platform at L1 with one private callback, and another one beside it."""
    made = listed({"acme/torch": 1, "other/torch": 1})
    callback(made["acme/torch"], workflow=HIDDEN, conclusion="failure", run_id="7", at=days_ago(3))
    return made["acme/torch"].platform


def private(client: Client, person: User | None) -> list[tuple[str, ...]] | None:
    """The rows that this person sees on the platform's page; None when there is no such section."""
    client.logout()
    if person:
        client.force_login(person)
    page = Page(client.get("/platforms/acme-torch/"))
    return page.tables.get("private", []) if "private" in page.sections else None


def test_a_member_sees_what_was_said(client: Client, acme: Platform) -> None:
    assert private(client, member_of(acme)) == [
        ("■ failure", "hush-workflow / test-ops run 7, attempt 1 · acme/torch", "delivery-1", "3 d ago")
    ]


def test_a_callback_without_a_conclusion_shows_its_status(client: Client, acme: Platform) -> None:
    repository = Repository.objects.get(full_name="acme/torch")
    callback(repository, status="in_progress", conclusion="", job_name="", at=days_ago(2))
    rows = private(client, member_of(acme))
    assert rows is not None
    assert [row[:2] for row in rows] == [
        ("◐ in progress", "CI run 7, attempt 1 · acme/torch"),
        ("■ failure", "hush-workflow / test-ops run 7, attempt 1 · acme/torch"),
    ]


def outsiders(acme: Platform) -> dict[str, User | None]:
    return {
        "visitor": None,
        "user": user(),
        "another platform's member": member_of(Platform.objects.get(slug="other-torch")),
        "maintainer": user(Role.MAINTAINER),
        "operator": user(Role.OPERATOR),
        "admin": user(Role.ADMIN),
        "superuser": user(is_superuser=True, is_staff=True),
        "former member": former_member(acme),
    }


def former_member(platform: Platform) -> User:
    left = member_of(platform)
    left.memberships.all().delete()
    return left


def test_nobody_else_sees_it_on_any_page(client: Client, acme: Platform) -> None:
    seen: dict[str, Any] = {}
    for name, person in outsiders(acme).items():
        assert private(client, person) is None, name
        for url in (*PAGES, "/rejections/"):
            if HIDDEN in client.get(url, follow=True).content.decode():
                seen[name] = url
    assert seen == {}


def test_when_the_last_one_came_is_private_too(client: Client, acme: Platform) -> None:
    def told() -> str:
        return Page(client.get("/platforms/acme-torch/")).facts["contacts-1"]["Last callback"]

    assert told() == "private until L2"
    listed({"other/torch": 1})
    assert told() == "private until L2"
    listed({"acme/torch": 2, "other/torch": 1})
    assert told() == "never"
    client.force_login(member_of(acme))
    assert told() == "▲ silent no callback for 73 hours"


def test_a_member_sees_it_on_the_platforms_page_only(client: Client, acme: Platform) -> None:
    client.force_login(member_of(acme))
    assert [url for url in PAGES if HIDDEN in client.get(url).content.decode()] == ["/platforms/acme-torch/"]


def test_an_inactive_member_does_not_see_it(client: Client, acme: Platform) -> None:
    member = member_of(acme)
    assert private(client, member)
    User.objects.filter(pk=member.pk).update(is_active=False)
    assert HIDDEN not in client.get("/platforms/acme-torch/").content.decode()


def test_it_stays_private_after_the_platform_has_risen(client: Client, acme: Platform) -> None:
    listed({"acme/torch": 4, "other/torch": 1})
    assert private(client, None) is None
    assert HIDDEN not in Page(client.get("/platforms/acme-torch/")).html
    assert private(client, member_of(acme))


def test_a_member_without_private_callbacks_reads_what_will_appear(client: Client, acme: Platform) -> None:
    client.force_login(member_of(Platform.objects.get(slug="other-torch")))
    page = Page(client.get("/platforms/other-torch/"))
    assert page.tables.get("private") is None
    assert "Callbacks sent at L1 appear here" in page.text
    assert 'href="/docs/first-callback/"' in page.html


@pytest.mark.parametrize("rows", [1, 3])
def test_the_page_asks_the_database_as_often_for_one_row_as_for_three(
    client: Client, acme: Platform, rows: int, django_assert_num_queries: Any
) -> None:
    repository = Repository.objects.get(full_name="acme/torch")
    for _ in range(rows - 1):
        callback(repository)
    client.force_login(member_of(acme))
    with django_assert_num_queries(32):
        page = Page(client.get("/platforms/acme-torch/"))
    assert len(page.tables["private"]) == rows


def test_the_way_to_the_first_callback_names_this_hubs_address_and_audience(client: Client) -> None:
    page = Page(client.get("/docs/first-callback/"))
    assert page.heading == "Your first callback"
    for word in ("http://127.0.0.1:8000/github/callback.", "audience pytorch-cross-repo-ci-relay,"):
        assert word in page.text
