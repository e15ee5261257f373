"""Every refusal has one form: problem+json for programs, a page for people."""

import hashlib
import hmac
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from django.conf import settings as django_settings
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import DataError, InterfaceError, OperationalError, connection
from django.http import Http404, HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import clear_url_caches, path

from accelhub import urls
from apps.accounts.policy import Role
from apps.core.access import public
from apps.core.errors import Problem
from apps.core.middleware import as_problem
from tests.factories.listing import listed, user
from tests.factories.pages import Page, problem, problem_body
from tests.live import ClonedDatabase, Hub

RAISED: dict[str, Exception] = {
    "problem": Problem("level_stale", "It moved.", "expected_level", {"Retry-After": "7"}),
    "too-big": RequestDataTooBig("Too big."),
    "bad": BadRequest("Bad."),
    "suspicious": SuspiciousOperation("Odd."),
    "denied": PermissionDenied("Not you."),
    "denied-silently": PermissionDenied(),
    "missing": Http404("What stood here is secret"),
    "database": OperationalError("secret host refused"),
    "interface": InterfaceError("secret cursor"),
    "fault": DataError("secret value"),
}
SAID: dict[str, tuple[str, str, str | None]] = {
    "problem": ("level_stale", "It moved.", "expected_level"),
    "too-big": ("too_large", "Too big.", None),
    "bad": ("malformed", "Bad.", None),
    "suspicious": ("malformed", "Odd.", None),
    "denied": ("not_permitted", "Not you.", None),
    "denied-silently": ("not_permitted", "You may not do this.", None),
    "missing": ("not_found", "There is nothing at this address, or not for you.", None),
    "database": ("unavailable", "The database does not answer.", None),
    "interface": ("unavailable", "The database does not answer.", None),
    "fault": ("internal", "The hub failed; its operators can see why.", None),
}


@public
def failing(request: HttpRequest, kind: str) -> HttpResponse:
    raise RAISED[kind]


@pytest.fixture
def failing_routes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A page and an API route that raise what they are told to."""
    routes = [path("api/failing/<kind>", failing), path("failing/<kind>", failing)]
    monkeypatch.setattr(urls, "urlpatterns", [*routes, *urls.urlpatterns])
    clear_url_caches()
    yield
    monkeypatch.undo()
    clear_url_caches()


@pytest.fixture
def calm(client: Client) -> Client:
    """A client that gets the answer to a fault, not the exception."""
    client.raise_request_exception = False
    return client


@pytest.mark.parametrize("kind", RAISED)
def test_a_program_gets_problem_json(calm: Client, failing_routes: None, kind: str) -> None:
    answer = calm.get(f"/api/failing/{kind}")
    assert problem(answer) == problem_body(*SAID[kind])
    retry = {"problem": "7", "database": "5", "interface": "5"}
    assert answer.headers.get("Retry-After") == retry.get(kind)
    assert "secret" not in answer.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("kind", RAISED)
def test_a_person_gets_a_page(calm: Client, failing_routes: None, kind: str) -> None:
    answer = calm.get(f"/failing/{kind}")
    code, detail, _ = SAID[kind]
    # Django itself answers a bad request, and says no more than that.
    detail = "The request could not be read." if code in ("malformed", "too_large") else detail
    code = "malformed" if code == "too_large" else code
    expected = problem_body(code, detail)
    page = Page(answer)
    assert (answer.status_code, page.heading, page.facts[""]["Code"]) == (expected[0], expected[2]["title"], code)
    assert detail in page.text
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "secret" not in page.html


@pytest.mark.django_db
def test_an_address_without_anything_says_so_to_both(client: Client) -> None:
    assert problem(client.get("/api/v1/nothing/")) == problem_body(
        "not_found", "There is nothing at this address, or not for you."
    )
    assert Page(client.get("/nothing/")).heading == "Not found"


@pytest.mark.django_db
def test_a_foreign_host_is_refused(client: Client) -> None:
    answer = client.get("/", headers={"host": "evil.example"})
    assert (answer.status_code, Page(answer).heading) == (400, "The request is malformed")
    assert "evil.example" not in answer.content.decode()


@pytest.mark.django_db
def test_what_a_problem_says_stays_text(client: Client) -> None:
    from apps.core.views import _error

    request = RequestFactory().get("/")
    html = _error(request, Problem("malformed", "<script>alert(1)</script>", "<b>")).content.decode()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "&lt;b&gt;" in html


def test_a_fault_of_the_hub_is_no_refusal() -> None:
    assert as_problem(ValueError("a fault")) is None


# --- without PostgreSQL -----------------------------------------------------------------------------------------


def webhook(client: Client) -> Any:
    body = json.dumps({"action": "opened", "repository": {"full_name": django_settings.UPSTREAM_REPO}})
    secret = django_settings.GITHUB_WEBHOOK_SECRET.encode()
    signature = hmac.new(secret, body.encode(), hashlib.sha256).hexdigest()
    return client.post(
        "/github/webhook",
        body,
        content_type="application/json",
        headers={
            "X-GitHub-Event": "pull_request",
            "X-GitHub-Delivery": "d-1",
            "X-Hub-Signature-256": f"sha256={signature}",
        },
    )


def level_by_token(client: Client) -> Any:
    return client.post("/api/v1/repositories/acme/torch/level/", headers={"Authorization": "Bearer ahub_x"})


def level_by_session(client: Client) -> Any:
    return client.post("/api/v1/repositories/acme/torch/level/")


@pytest.fixture
def without_postgresql(cloned_database: ClonedDatabase, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client that was signed in before PostgreSQL went away; call it to let PostgreSQL go."""
    client = Client(raise_request_exception=False)
    listed({"acme/torch": 2})
    client.force_login(user(Role.ADMIN))
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "HOST", "/nowhere")
        connection.close()
        yield client


@pytest.mark.parametrize("call", [webhook, level_by_token, level_by_session])
def test_without_postgresql_a_program_is_told_to_try_again(
    without_postgresql: Client, call: Callable[[Client], Any]
) -> None:
    answer = call(without_postgresql)
    assert problem(answer) == problem_body("unavailable", "The database does not answer.")
    assert answer.headers["Retry-After"] == "5"


@pytest.mark.parametrize("url", ["/", "/platforms/acme-torch/", "/decisions/1/", "/rejections/"])
@pytest.mark.parametrize("person", ["signed in", "visitor"])
def test_without_postgresql_a_person_gets_a_page_that_says_so(
    without_postgresql: Client, url: str, person: str
) -> None:
    if person == "visitor":
        if url == "/rejections/":
            url = "/platforms/"
        without_postgresql.cookies.clear()
    answer = without_postgresql.get(url)
    page = Page(answer)
    assert (answer.status_code, page.heading) == (503, "The hub cannot store this now")
    assert "The database does not answer." in page.text
    assert answer.headers["Retry-After"] == "5"


def test_what_needs_no_database_is_still_answered(without_postgresql: Client) -> None:
    without_postgresql.cookies.clear()
    urls = ("/healthz", "/policy/metrics/", "/docs/errors/csrf")
    assert [without_postgresql.get(url).status_code for url in urls] == [200, 200, 200]


# --- requests that Django would misread -------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["rot13", "hex", "base64", "punycode", "undefined", "unicode_escape", "no-such"])
@pytest.mark.parametrize("path", ["/platforms/?q=%5Cud800", "/healthz?x=1", "/api/v1/nothing/?x=1", "/nothing/?x=1"])
def test_a_charset_in_the_content_type_changes_nothing(hub: Hub, path: str, codec: str) -> None:
    plain = requests.get(hub.url + path, timeout=20)
    odd = requests.get(hub.url + path, headers={"Content-Type": f"text/plain; charset={codec}"}, timeout=20)
    assert (odd.status_code, odd.headers["Content-Type"]) == (plain.status_code, plain.headers["Content-Type"])
    assert odd.status_code in (200, 404)


@pytest.mark.parametrize("path", ["/github/callback", "/github/webhook", "/api/v1/repositories/a/b/level/"])
def test_a_chunked_body_is_asked_for_whole(client: Client, path: str) -> None:
    answer = client.post(path, b"", "application/json", headers={"Transfer-Encoding": "chunked"})
    assert problem(answer) == problem_body(
        "malformed", "Content-Length: is missing; send the body whole, not chunked.", "Content-Length"
    )


@pytest.mark.django_db
def test_a_form_of_a_megabyte_is_not_read(client: Client) -> None:
    body = {"username": "ada", "file": io.BytesIO(b"x" * 1_000_001)}
    answer = client.post("/accounts/login/", body)
    assert (answer.status_code, Page(answer).heading) == (413, "The request is too large")


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/console/", "/register/", "/account/"])
def test_a_page_that_says_nothing_of_it_is_kept_by_nobody(client: Client, path: str) -> None:
    client.force_login(user())
    assert "no-store" in client.get(path).headers["Cache-Control"]
