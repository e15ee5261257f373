"""ACCELHUB_LOCAL_SIGN_IN: names and passwords, where they are taken at all."""

from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from tests.factories.listing import user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
LOGIN = reverse("accounts:login")
SIGN_IN = {"username": "ada", "password": "password"}


@pytest.fixture(autouse=True)
def ada(settings: Any) -> User:
    settings.LOCAL_SIGN_IN = False
    settings.SOCIAL_AUTH_GITHUB_KEY = settings.SOCIAL_AUTH_GITHUB_SECRET = "given"
    return user(username="ada")


def test_where_it_is_off_github_is_all_there_is(client: Client) -> None:
    page = Page(client.get(LOGIN))
    assert "Sign in with GitHub" in page.text
    assert 'type="password"' not in page.html


def test_where_it_is_off_a_right_password_opens_nothing(client: Client) -> None:
    answer = client.post(LOGIN, SIGN_IN)
    assert (answer.status_code, Page(answer).heading) == (403, "Not permitted")
    assert "_auth_user_id" not in client.session
    assert authenticate(username="ada", password="password") is None


def test_where_it_is_on_both_are_offered(client: Client, settings: Any) -> None:
    settings.LOCAL_SIGN_IN = True
    page = Page(client.get(LOGIN))
    assert ("Sign in with GitHub" in page.text, 'type="password"' in page.html) == (True, True)
    assert client.post(LOGIN, SIGN_IN).status_code == 302


def test_where_nothing_is_set_up_the_page_says_so(client: Client, settings: Any) -> None:
    settings.SOCIAL_AUTH_GITHUB_KEY = ""
    page = Page(client.get(LOGIN))
    assert "Nobody can sign in here yet" in page.text
    assert "<button" not in page.html.partition("<main")[2].partition("</main>")[0]


def test_only_the_sign_in_page_lets_a_form_lead_to_github(client: Client, settings: Any) -> None:
    settings.GITHUB_URL = "https://github.example"

    def form_action(url: str) -> str:
        policy = client.get(url).headers["Content-Security-Policy"]
        return next(part.strip() for part in policy.split(";") if part.strip().startswith("form-action"))

    assert form_action(LOGIN) == "form-action 'self' https://github.example"
    assert form_action("/decisions/") == "form-action 'self'"
