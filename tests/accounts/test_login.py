"""`/accounts/login/` and `/accounts/logout/`."""

import dataclasses

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts import views
from apps.accounts.models import User
from tests.factories.listing import user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
LOGIN, LOGOUT = reverse("accounts:login"), reverse("accounts:logout")
SIGN_IN = {"username": "ada", "password": "password"}


@pytest.fixture
def ada() -> User:
    return user(username="ada")


def signed_in_as(client: Client) -> str | None:
    return client.session.get("_auth_user_id")


def test_a_user_signs_in_and_comes_to_the_overview(client: Client, ada: User) -> None:
    answer = client.post(LOGIN, SIGN_IN)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert signed_in_as(client) == str(ada.pk)


@pytest.mark.parametrize("wrong", [{"password": "other"}, {"username": "eve"}, {"username": "ada\0"}, {"password": ""}])
def test_a_wrong_name_or_password_is_refused(client: Client, ada: User, wrong: dict[str, str]) -> None:
    answer = client.post(LOGIN, SIGN_IN | wrong)
    assert answer.status_code == 200
    assert signed_in_as(client) is None


def test_a_password_cannot_be_guessed_for_long(client: Client, ada: User, empty_redis: None) -> None:
    user(username="eve")
    wrong = SIGN_IN | {"password": "other"}
    assert [client.post(LOGIN, wrong).status_code for _ in range(11)] == [200] * 10 + [429]
    # Not with the right one either, nor with the name spelled in any other way that the form takes.
    for spelled in ("ada", "ADA", "  ada ", "\uff41\uff44\uff41"):
        answer = client.post(LOGIN, SIGN_IN | {"username": spelled})
        assert (answer.status_code, Page(answer).heading) == (429, "Too many requests")
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert signed_in_as(client) is None
    assert client.post(LOGIN, SIGN_IN | {"username": "eve"}).status_code == 302


def test_guesses_at_many_names_are_limited_too(
    client: Client, ada: User, empty_redis: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "ALL_FAILED_SIGN_INS", dataclasses.replace(views.ALL_FAILED_SIGN_INS, per_minute=3))
    answers = [client.post(LOGIN, SIGN_IN | {"username": f"name-{n}"}).status_code for n in range(4)]
    assert (answers, client.post(LOGIN, SIGN_IN).status_code) == ([200, 200, 200, 429], 429)


def test_right_passwords_are_not_counted(client: Client, ada: User, empty_redis: None) -> None:
    assert {client.post(LOGIN, SIGN_IN).status_code for _ in range(12)} == {302}


def test_an_inactive_user_is_refused(client: Client) -> None:
    user(username="ada", is_active=False)
    client.post(LOGIN, SIGN_IN)
    assert signed_in_as(client) is None


def test_a_session_ends_when_its_user_becomes_inactive(client: Client, ada: User) -> None:
    client.force_login(ada)
    assert client.get(reverse("public:rejections")).status_code == 200
    ada.is_active = False
    ada.save()
    assert client.get(reverse("public:rejections")).status_code == 302


def test_signing_in_leads_back_to_where_one_came_from(client: Client, ada: User) -> None:
    answer = client.post(LOGIN, SIGN_IN | {"next": "/rejections/?page=2"})
    assert answer.headers["Location"] == "/rejections/?page=2"


@pytest.mark.parametrize(
    "target",
    ["https://evil.example/", "//evil.example/", "/\\evil.example/", "javascript:alert(1)", "http:///evil.example/"],
)
def test_signing_in_never_leads_to_another_site(client: Client, ada: User, target: str) -> None:
    assert "evil.example" not in client.get(LOGIN, {"next": target}).content.decode()
    assert client.post(f"{LOGIN}?next={target}", SIGN_IN).headers["Location"] == "/"
    assert client.get(LOGIN, {"next": target}).headers["Location"] == "/"  # signed in already


def test_the_page_remembers_where_one_came_from_as_text(client: Client) -> None:
    html = client.get(LOGIN, {"next": '/"><script>alert(1)</script>'}).content.decode()
    assert "<script>alert(1)" not in html
    assert "/&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_outside_the_demo_the_page_shows_no_demo_account(client: Client) -> None:
    page = Page(client.get(LOGIN))
    assert (page.heading, page.tables) == ("Sign in", {})
    assert "demo" not in page.html.lower()


def test_signing_out_takes_a_post(client: Client, ada: User) -> None:
    client.force_login(ada)
    assert client.get(LOGOUT).status_code == 405
    assert signed_in_as(client) == str(ada.pk)
    answer = client.post(LOGOUT)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert signed_in_as(client) is None


def test_another_site_can_neither_sign_in_nor_out(ada: User) -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post(LOGIN, SIGN_IN).status_code == 403
    client.force_login(ada)
    assert client.post(LOGOUT).status_code == 403
    assert signed_in_as(client) == str(ada.pk)
