"""How a route declares what it asks of its caller. Every route declares exactly one thing; a test walks the URLs to
prove it."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from apps.core.permissions import Access, Open

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


def public(view: View) -> View:
    """Declare a view open to anyone."""
    view.access = Open.PUBLIC  # type: ignore[attr-defined]
    return view


def signed(view: View) -> View:
    """Declare a view that authenticates its caller by a signature in the request."""
    view.access = Open.SIGNED  # type: ignore[attr-defined]
    return view


def requires(access: Access) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """Declare and enforce a permission on a page: a visitor is sent to sign in, anyone else without it gets 403."""

    def decorate(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not is_allowed(request.user, access):
                if request.user.is_anonymous:
                    return redirect_to_login(request.get_full_path())
                raise PermissionDenied(f"This needs the permission {access}.")
            return view(request, *args, **kwargs)

        guarded.access = access  # type: ignore[attr-defined]
        return guarded

    return decorate


def is_allowed(user: Any, access: Access) -> bool:
    """Whether this user (or AnonymousUser) passes a declaration. Object-level rules are the access functions' part."""
    if access in (Open.PUBLIC, Open.SIGNED):
        return True
    if user.is_anonymous:
        return False
    return access is Open.SIGNED_IN or user.may(access)
