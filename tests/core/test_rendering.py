"""One address, two answers: the page, or the fragment that htmx asked for; and parts that ask again."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory, override_settings
from django_htmx.middleware import HtmxDetails

from apps.core.rendering import etag_of, fragment_of, live, render_page

PAGE = '<h1>{{ word }}</h1>{% partialdef list inline %}<ul id="list">{{ word }}</ul>{% endpartialdef %}'
ENGINE = {
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "OPTIONS": {
        "loaders": [
            (
                "template_partials.loader.Loader",
                [
                    (
                        "django.template.loaders.cached.Loader",
                        [("django.template.loaders.locmem.Loader", {"page.html": PAGE})],
                    )
                ],
            )
        ],
        "builtins": ["template_partials.templatetags.partials"],
    },
}


@pytest.fixture(autouse=True)
def _page() -> Any:
    with override_settings(TEMPLATES=[ENGINE]):
        yield


def asked(path: str = "/list/?page=2", **headers: str) -> HttpRequest:
    request = RequestFactory().get(path, headers=headers)
    request.htmx = HtmxDetails(request)  # type: ignore[attr-defined]
    request.user = AnonymousUser()
    return request


def by_htmx(target: str = "list", **headers: str) -> HttpRequest:
    return asked(**{"HX-Request": "true", "HX-Target": target} | headers)


WHOLE = '<h1>a</h1><ul id="list">a</ul>'
FRAGMENT = '<ul id="list">a</ul>'


def answer(request: HttpRequest) -> tuple[str, str, str]:
    """Body, Cache-Control, Vary."""
    given = render_page(request, "page.html", {"word": "a"})
    return given.content.decode(), given.headers["Cache-Control"], given.headers["Vary"]


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        (asked(), WHOLE),
        (by_htmx(), FRAGMENT),
        (by_htmx("nothing-here"), WHOLE),
        (by_htmx(""), WHOLE),
        (by_htmx("a#b/../x"), WHOLE),
        (by_htmx(**{"HX-Boosted": "true"}), WHOLE),
        (by_htmx(**{"HX-History-Restore-Request": "true"}), WHOLE),
        (asked(**{"HX-Target": "list"}), WHOLE),
    ],
    ids=["visitor", "htmx", "no-such-part", "no-target", "odd-target", "boosted", "history", "no-htmx"],
)
def test_htmx_gets_the_partial_that_it_names_and_everyone_else_the_page(request_: HttpRequest, body: str) -> None:
    keep = "no-store" if body == FRAGMENT else "private, no-cache"
    assert answer(request_) == (body, keep, "HX-Request, HX-Target")


def test_a_status_is_kept_and_a_page_needs_no_context() -> None:
    given = render_page(asked(), "page.html", status=422)
    assert (given.status_code, given.content.decode()) == (422, '<h1></h1><ul id="list"></ul>')
    assert "ETag" not in given.headers


def test_a_request_that_passed_no_middleware_gets_the_page() -> None:
    assert (
        fragment_of(RequestFactory().get("/", headers={"HX-Request": "true", "HX-Target": "list"}), "page.html") == ""
    )


# --- live parts -------------------------------------------------------------------------------------------------


class Counted:
    """A live view that counts how often it ran."""

    def __init__(self, version: object = 1) -> None:
        self.version: object = version
        self.runs = 0
        self.view = live(lambda request, *args: (self.version, args))(self._view)

    def _view(self, request: HttpRequest, *args: str) -> HttpResponse:
        self.runs += 1
        return render_page(request, "page.html", {"word": "a"})

    def ask(self, request: HttpRequest, *args: str) -> HttpResponse:
        return self.view(request, *args)


def test_a_part_that_did_not_change_is_answered_304_without_a_view() -> None:
    live_page = Counted()
    tag = live_page.ask(by_htmx()).headers["ETag"]
    assert re.fullmatch(r'W/"[0-9a-f]{24}"', tag)
    again = live_page.ask(by_htmx(**{"If-None-Match": tag}))
    assert (again.status_code, again.content, dict(again.headers)) == (
        304,
        b"",
        {"Cache-Control": "no-store", "Vary": "HX-Request, HX-Target", "ETag": tag},
    )
    assert live_page.runs == 1
    live_page.version = 2
    changed = live_page.ask(by_htmx(**{"If-None-Match": tag}))
    assert (changed.status_code, changed.content.decode(), live_page.runs) == (200, FRAGMENT, 2)
    assert changed.headers["ETag"] != tag


def test_a_tag_is_of_one_part_one_address_and_one_person() -> None:
    live_page = Counted()
    tag = live_page.ask(by_htmx()).headers["ETag"]
    elsewhere = asked("/list/?page=3", **{"HX-Request": "true", "HX-Target": "list", "If-None-Match": tag})
    someone = by_htmx(**{"If-None-Match": tag})
    someone.user = type("User", (), {"pk": 7})()
    others = [
        live_page.ask(by_htmx("other", **{"If-None-Match": tag})),
        live_page.ask(elsewhere),
        live_page.ask(someone),
        live_page.ask(by_htmx(**{"If-None-Match": tag}), "of-another-platform"),
    ]
    assert [other.status_code for other in others] == [200] * 4


def test_a_whole_page_is_always_rendered() -> None:
    live_page = Counted()
    tag = live_page.ask(by_htmx()).headers["ETag"]
    for request in (asked(**{"If-None-Match": tag}), asked(**{"If-None-Match": "*"})):
        page = live_page.ask(request)
        assert (page.status_code, page.content.decode(), "ETag" in page.headers) == (200, WHOLE, False)


def test_the_tag_is_only_made_for_live_pages() -> None:
    assert etag_of(by_htmx(), "list") == ""
