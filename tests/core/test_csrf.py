"""A form that another site sends is refused, in words for whoever reads them."""

import pytest
from django.test import Client

from tests.factories.listing import user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db


@pytest.fixture
def strict() -> Client:
    return Client(enforce_csrf_checks=True)


def test_a_page_says_that_the_form_has_expired(strict: Client) -> None:
    answer = strict.post("/accounts/login/", {"username": "ada", "password": "password"})
    page = Page(answer)
    assert (answer.status_code, page.heading) == (403, "The form has expired")
    assert page.facts[""] == {"What to do": "Reload the page and send the form again.", "Code": "csrf"}


def test_an_api_route_answers_problem_json(strict: Client) -> None:
    strict.force_login(user())
    answer = strict.post("/api/v1/repositories/acme/torch/level/", "{}", content_type="application/json")
    assert (answer.status_code, answer.headers["Content-Type"], answer.json()["code"]) == (
        403,
        "application/problem+json",
        "csrf",
    )


def test_the_token_on_the_page_is_the_one_that_is_taken(strict: Client) -> None:
    user(username="ada")
    strict.get("/accounts/login/")
    token = next(cookie.value for name, cookie in strict.cookies.items() if name.startswith("accelhub_csrf"))
    form = {"username": "ada", "password": "password", "csrfmiddlewaretoken": token}
    assert strict.post("/accounts/login/", form).status_code == 302


def test_a_signed_route_needs_no_form_token(strict: Client) -> None:
    answer = strict.post("/github/webhook", "{}", content_type="application/json", headers={"X-GitHub-Event": "ping"})
    assert (answer.status_code, answer.json()["status"]) == (200, "ignored")
