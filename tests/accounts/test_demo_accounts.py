"""The people of the demo: there in demo mode only, and dead the moment it is off."""

from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from apps.accounts.demo import DEMO_ACCOUNTS, ensure_demo_accounts
from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.accounts.services import create_api_token
from apps.audit.models import Event
from apps.core.clock import now
from apps.core.enums import Kind
from apps.core.models import Installation
from apps.platforms.models import Platform
from tests.factories.listing import TESTS, listed
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
LOGIN = reverse("accounts:login")


@pytest.fixture
def demo(settings: Any) -> None:
    settings.DEMO = True
    Installation.objects.update(kind=Kind.DEMO)
    call_command("seed_demo")


def test_each_role_has_an_account(demo: None) -> None:
    assert {
        account.username: (account.is_demo, account.is_staff, account.is_superuser, account.roles)
        for account in User.objects.all()
    } == {
        "demo-maintainer": (True, False, False, {Role.MAINTAINER}),
        "demo-vendor": (True, False, False, set()),
        "demo-operator": (True, False, False, {Role.OPERATOR}),
        "demo-admin": (True, False, False, {Role.ADMIN}),
    }
    assert {account.email for account in DEMO_ACCOUNTS} == set(User.objects.values_list("email", flat=True))
    members = Platform.objects.filter(memberships__user__username="demo-vendor")
    assert [platform.name for platform in members] == ["Pallas One"]


def test_seeding_again_changes_nothing(demo: None) -> None:
    before = (list(User.objects.values()), list(Event.objects.values()), list(Platform.objects.values()))
    call_command("seed_demo")
    assert (list(User.objects.values()), list(Event.objects.values()), list(Platform.objects.values())) == before


def test_outside_the_demo_nobody_can_make_them() -> None:
    with pytest.raises(RuntimeError) as refused:
        ensure_demo_accounts(now=now())
    assert str(refused.value) == "demo accounts exist only with ACCELHUB_DEMO"
    with pytest.raises(CommandError) as caught:
        call_command("seed_demo")
    assert str(caught.value) == "seed_demo is for the demo: set ACCELHUB_DEMO=1."
    assert not User.objects.exists()


def test_a_real_hubs_database_gets_none(settings: Any) -> None:
    settings.DEMO = True
    with pytest.raises(CommandError) as caught:
        call_command("seed_demo")
    assert " is kept by a real hub, and this is a demo: set " in str(caught.value)
    assert not User.objects.exists()


def test_the_page_offers_each_of_them(client: Client, demo: None) -> None:
    assert Page(client.get(LOGIN)).tables == {
        "demo": [
            (account.role.label, account.username, account.password, f"Use {account.username}")
            for account in DEMO_ACCOUNTS
        ]
    }


@pytest.mark.parametrize("account", DEMO_ACCOUNTS, ids=lambda account: account.username)
def test_they_sign_in_with_the_password_on_the_page_until_the_demo_is_off(
    client: Client, demo: None, settings: Any, account: Any
) -> None:
    sign_in = {"username": account.username, "password": account.password}
    assert client.post(LOGIN, sign_in).status_code == 302
    client.post(reverse("accounts:logout"))
    settings.DEMO = False
    assert client.post(LOGIN, sign_in).status_code == 200
    assert "_auth_user_id" not in client.session


def test_a_running_session_ends_with_the_demo(client: Client, demo: None, settings: Any) -> None:
    client.force_login(User.objects.get(username="demo-maintainer"))
    page = reverse("platforms:level", args=["pallas-demo", "torch-pallas"])
    assert client.get(page).status_code == 200
    settings.DEMO = False
    answer = client.get(page)
    assert (answer.status_code, answer.headers["Location"]) == (302, f"{LOGIN}?next={page}")


def test_an_api_token_dies_with_the_demo(client: Client, demo: None, settings: Any) -> None:
    listed({"acme/torch": 1})
    maintainer = User.objects.get(username="demo-maintainer")
    token = create_api_token(user=maintainer, note="demo", actor=TESTS, now=now())

    def ask(level: str) -> int:
        return client.post(
            reverse("api:level", args=["acme", "torch"]),
            {"level": level, "reason": "a try"},
            content_type="application/json",
            headers={"Authorization": f"Bearer {token}"},
        ).status_code

    assert ask("L2") == 200
    settings.DEMO = False
    assert ask("L1") == 401
