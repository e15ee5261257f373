"""How Django REST framework speaks the hub's manners: declared access, problem+json."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rest_framework import exceptions, serializers
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from apps.core.access import is_allowed
from apps.core.errors import Problem, problem_response
from apps.core.middleware import as_problem
from apps.core.permissions import Access

if TYPE_CHECKING:  # REST framework's settings import this module while its views are being imported
    from rest_framework.views import APIView


class DeclaredAccess(BasePermission):
    """Enforces the view class's `access`. A class without one is refused, never open by accident."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        access: Access = view.access  # type: ignore[attr-defined]
        self.message = f"This needs the permission {access}: ask an admin for a role that has it, see /policy/."
        return is_allowed(request.user, access)


class Negotiation(DefaultContentNegotiation):
    """`?format=` names one of the forms that a view answers in; any other is a malformed request."""

    def filter_renderers(self, renderers: Iterable[BaseRenderer], format: str) -> list[BaseRenderer]:
        offered = list(renderers)
        found = [renderer for renderer in offered if renderer.format == format]
        if not found:
            known = " or ".join(str(renderer.format) for renderer in offered)
            raise Problem("malformed", f"format: saw {format[:20]!r}, send {known}.", "format")
        return found


SIGN_IN = "Send Authorization: Bearer <API token>; make one on /account/."

# What REST framework finds, in the manners of errors here: what was seen, what to send.
_FINDINGS = {
    "required": "is missing, send it.",
    "null": "is null, send a value.",
    "blank": "is empty, send text.",
    "null_characters_not_allowed": "holds a NUL character, send text without.",
}


def choice(choices: Sequence[str], what: str, **options: Any) -> serializers.ChoiceField:
    """A field with one of these words, in their order. `what` names them in the error."""
    told = f"'{{input}}' is no {what}, send one of {choices[0]} … {choices[-1]}."
    return serializers.ChoiceField(choices=list(choices), error_messages={"invalid_choice": told}, **options)


def text(max_length: int, **options: Any) -> serializers.CharField:
    """A field of text, at most so many characters."""
    told: dict[str, Any] = {
        "max_length": "is longer than {max_length} characters, send less.",
        "invalid": "is no text, send a string.",
    }
    return serializers.CharField(max_length=max_length, error_messages=told, **options)


_DRF_CODES: dict[type[exceptions.APIException], str] = {
    exceptions.ParseError: "malformed",
    exceptions.NotAuthenticated: "not_signed_in",
    exceptions.AuthenticationFailed: "not_signed_in",
    exceptions.PermissionDenied: "not_permitted",
    exceptions.MethodNotAllowed: "method",
    exceptions.NotAcceptable: "not_acceptable",
    exceptions.UnsupportedMediaType: "media_type",
    exceptions.Throttled: "rate_limited",
}


def problem_handler(error: Exception, context: dict[str, Any]) -> Any:
    """DRF's exception hook: the first invalid field becomes `field`, `detail` says all, everything is problem+json."""
    if isinstance(error, exceptions.ValidationError):
        found = list(_findings(error.detail))
        return problem_response(Problem("malformed", " ".join(told for _, told in found), found[0][0]))
    if isinstance(error, RecursionError):  # the only recursion of a view here is the parser's
        return problem_response(Problem("malformed", "The body is nested too deeply."))
    for kind, code in _DRF_CODES.items():
        if isinstance(error, kind):
            detail = SIGN_IN if isinstance(error, exceptions.NotAuthenticated) else str(error.detail)
            # SessionAuthentication says it in words only.
            code = "csrf" if detail.startswith("CSRF Failed") else code
            return problem_response(Problem(code, detail, headers=_headers(error)))
    problem = as_problem(error)
    return problem_response(problem) if problem else None


def _headers(error: exceptions.APIException) -> dict[str, str]:
    wait = getattr(error, "wait", None)
    headers = {"Retry-After": str(int(wait))} if wait else {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    return headers


def _findings(detail: Any, path: str = "") -> Iterator[tuple[str | None, str]]:
    """Each invalid field's dotted path, and the sentence about it: the first one of each field."""
    if isinstance(detail, dict):
        for key, inner in detail.items():
            step = "" if key == "non_field_errors" else str(key)
            yield from _findings(inner, ".".join(filter(None, (path, step))))
    elif isinstance(detail, list):
        yield from _findings(detail[0], path)
    else:
        told = _FINDINGS.get(detail.code, str(detail))
        yield path or None, f"{path}: {told}" if path else told
