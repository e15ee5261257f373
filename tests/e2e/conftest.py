"""Debian's Chromium, driven by Playwright, against a hub with something on every page.

One browser a module, a context (cookies, settings) for each person in a test. Whatever goes wrong silently in
a browser ends the test: an error on the console (a violation of the Content-Security-Policy is one), an exception in a
script, a request to another host.
"""

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright
from pytest_django import DjangoDbBlocker

from tests.live import Hub, administer
from tests.sign_in import github

if TYPE_CHECKING:
    from tests.e2e.field import Field

__all__ = ["github"]

MISSING = "NO BROWSER TEST RAN: Chromium is missing. Get it: apt-get update && apt-get install -y chromium"
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
# A bound against hanging on a busy machine, not an expectation.
PATIENCE_MS = 20_000

# What htmx says about a request that a newer one of the same form replaced, as hx-sync asks for.
REPLACED = ("htmx:afterRequest, ", "htmx:sendAbort, ")
_numbers = itertools.count()

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser(django_db_setup: None) -> Iterator[Browser]:
    """The browser. While it runs, so does Playwright's event loop, in this thread."""
    from django.db import connections

    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if not executable:
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING, pytrace=False)
        pytest.skip(MISSING)
    # Django keeps one set of connections for code outside a loop and one for code inside: each is closed where it ends.
    connections.close_all()
    with pytest.MonkeyPatch.context() as patch:
        # Django refuses its ORM where a loop runs, lest a query hold up the loop's other work. This one has none.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        with sync_playwright() as playwright:
            launched = playwright.chromium.launch(executable_path=executable, args=ARGS)
            yield launched
            launched.close()
            connections.close_all()


@pytest.fixture(scope="module")
def grown(browser: Browser, django_db_blocker: DjangoDbBlocker) -> Iterator["Field"]:
    """A database with something on every page. Made once a module: `cloned_database` copies what Django's connection
    points at, so each test here begins with a copy of this one; afterwards it points at the empty one again."""
    from django.db import connection, connections

    from tests.e2e.field import grow  # models: this module loads before settings may

    empty = connection.settings_dict["NAME"]
    # Another name each time: a process remembers the names of tests by their database.
    name = f"{empty}_grown_{next(_numbers)}"
    administer(f'CREATE DATABASE "{name}" TEMPLATE "{empty}"')
    connection.settings_dict["NAME"] = name
    try:
        with django_db_blocker.unblock():
            made = grow()
            connections.close_all()  # a template may have no other users
        yield made
    finally:
        connections.close_all()
        connection.settings_dict["NAME"] = empty
        administer(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def static_files(settings: Any) -> None:
    """Style and scripts come from the source tree: collectstatic never ran. Requested before the hub starts."""
    settings.WHITENOISE_USE_FINDERS = True


@pytest.fixture
def site(grown: "Field", static_files: None, hub: Hub) -> Hub:
    """A hub that serves whole pages."""
    return hub


@pytest.fixture
def field(site: Hub, grown: "Field") -> "Field":
    """What there is to see."""
    return grown


class Watch:
    """What happened in a browser that nobody saw on the page."""

    def __init__(self, origin: str) -> None:
        self.troubles: list[str] = []
        self.origin = origin
        # Addresses whose own refusal is the page that is looked at: Chromium writes a line about it.
        self.refusals: set[str] = set()
        # Where else a browser may be sent: GitHub, to sign in.
        self.elsewhere: set[str] = set()

    def over(self, context: BrowserContext) -> None:
        context.on("console", self._console)
        context.on("weberror", lambda error: self.troubles.append(f"exception: {error.error}"))
        context.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        is_expected = message.location.get("url") in self.refusals or message.text.startswith(REPLACED)
        if message.type == "error" and not is_expected:
            self.troubles.append(f"console: {message.text}")

    def _request(self, request: Request) -> None:
        to = urlsplit(request.url)
        if f"{to.scheme}://{to.netloc}" not in {self.origin, *self.elsewhere} and to.scheme != "data":
            self.troubles.append(f"request to another host: {request.url}")


@pytest.fixture
def watch(site: Hub) -> Iterator[Watch]:
    """Over every page of the test."""
    watching = Watch(site.url)
    yield watching
    assert watching.troubles == []


@pytest.fixture
def new_page(browser: Browser, site: Hub, watch: Watch) -> Iterator[Callable[..., Page]]:
    """A page of a browser of one's own: `new_page(java_script_enabled=False)`, `new_page(who="ada")` for signed in."""
    contexts = []

    def make(*, who: str = "", **options: Any) -> Page:
        context = browser.new_context(base_url=site.url, reduced_motion="reduce", **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        watch.over(context)
        page = context.new_page()
        if who:
            page.goto("/accounts/login/?next=/policy/")
            sign_in(page, who)
        return page

    yield make
    for context in contexts:
        context.close()


def sign_in(page: Page, name: str) -> None:
    """Fill in and send the form of the sign-in page that is shown."""
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password", exact=True).fill("password")
    page.get_by_role("main").get_by_role("button", name="Sign in", exact=True).click()
    expect(page.locator(".who")).to_have_text(name)
