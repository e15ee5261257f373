"""`/docs/errors/<code>`: the address in every problem's `type` explains it."""

import pytest
from django.test import Client

from apps.core.errors import CODES
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("code", CODES)
def test_each_code_has_a_page(client: Client, code: str) -> None:
    answer = client.get(f"/docs/errors/{code}")
    page = Page(answer)
    assert (answer.status_code, page.heading) == (200, CODES[code].title)
    assert f"Error {code} HTTP {CODES[code].status}" in page.text
    assert page.text.count(CODES[code].next_step.replace("`", "")) == 2  # for itself, and in the table of all


def test_the_page_lists_every_code(client: Client) -> None:
    assert Page(client.get("/docs/errors/csrf")).tables["all"] == [
        (code, str(row.status), row.title, row.next_step.replace("`", "")) for code, row in CODES.items()
    ]


def test_an_unknown_code_is_not_found(client: Client) -> None:
    assert client.get("/docs/errors/nothing").status_code == 404


def test_every_code_is_an_error_of_http_and_none_is_422() -> None:
    statuses = {row.status for row in CODES.values()}
    assert statuses == {400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 429, 500, 503}
