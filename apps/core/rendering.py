"""How a page is answered: whole, or as the one fragment that htmx asked for; and how a live part is asked for again.

A fragment is a `{% partialdef %}` of the page's own template, named as the id of the element that it replaces. So the
address, the view and the template are those of the page, and without JavaScript the same link gives the whole page.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.template import TemplateDoesNotExist
from django.template.loader import get_template
from django.utils.cache import patch_vary_headers
from django.utils.crypto import salted_hmac
from django.utils.http import parse_etags

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]

# htmx answers of one address differ from its page, and a part's from another part's.
VARY = ("HX-Request", "HX-Target")


def render_page(
    request: HttpRequest, template: str, context: Mapping[str, Any] | None = None, *, status: int | None = None
) -> HttpResponse:
    """The page; or, where htmx asks for an element that the template has as a partial, that partial alone."""
    fragment = fragment_of(request, template)
    response = render(request, f"{template}#{fragment}" if fragment else template, dict(context or {}), status=status)
    # No copy of a fragment is kept: its ages would be those of when it was made, and “back” would show it as a page.
    return _as_answer(response, "no-store" if fragment else "private, no-cache", etag_of(request, fragment))


def fragment_of(request: HttpRequest, template: str) -> str:
    """The partial of this template that the request asks for; empty: the whole page."""
    htmx = getattr(request, "htmx", None)
    if not htmx or htmx.boosted or htmx.history_restore_request or not htmx.target:
        return ""
    try:
        get_template(f"{template}#{htmx.target}")
    except TemplateDoesNotExist:
        return ""
    return str(htmx.target)


def live(version: Callable[Concatenate[HttpRequest, P], object]) -> Callable[[View[P]], View[P]]:
    """Declare a page whose parts ask again by themselves (`{% live "id" %}` on each).

    `version` gets what the view gets and says cheaply what the page stands on: anything whose `repr` changes with it,
    such as (newest change, count). A part that asks with the tag it was made with is answered 304, and no view runs.
    Stands below the declaration of access: who may not read the page is told no version of it.
    """

    def decorate(view: View[P]) -> View[P]:
        @functools.wraps(view)
        def conditional(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            request.live_version = repr(version(request, *args, **kwargs))  # type: ignore[attr-defined]
            htmx = getattr(request, "htmx", None)
            tag = etag_of(request, str(htmx.target or "")) if htmx else ""
            if tag and tag in parse_etags(request.headers.get("If-None-Match", "")):
                return _as_answer(HttpResponseNotModified(), "no-store", tag)
            return view(request, *args, **kwargs)

        return conditional

    return decorate


def etag_of(request: HttpRequest, fragment: str) -> str:
    """The weak tag of one part of a live page, for this address and this person; empty where nothing is live."""
    version = getattr(request, "live_version", None)
    if version is None or not fragment:
        return ""
    user = getattr(request, "user", None)
    parts = (fragment, request.get_full_path(), repr(user.pk if user else None), version)
    # Keyed: who guesses what a version is made of cannot tell by the tag that the guess is right.
    return f'W/"{salted_hmac(__name__, chr(0).join(parts), algorithm="sha256").hexdigest()[:24]}"'


def _as_answer(response: HttpResponse, keep: str, etag: str) -> HttpResponse:
    response.headers["Cache-Control"] = keep
    patch_vary_headers(response, VARY)
    if etag:
        response.headers["ETag"] = etag
    return response
