"""How Django REST framework speaks the hub's manners: declared access, problem+json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import exceptions
from rest_framework.permissions import BasePermission
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
        return is_allowed(request.user, access)


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
    """DRF's exception hook: the first invalid field becomes `field`, everything becomes problem+json."""
    if isinstance(error, exceptions.ValidationError):
        field, detail = _first_field(error.detail)
        return problem_response(Problem("malformed", detail, field))
    if isinstance(error, RecursionError):  # the only recursion of a view here is the parser's
        return problem_response(Problem("malformed", "The body is nested too deeply."))
    for kind, code in _DRF_CODES.items():
        if isinstance(error, kind):
            detail = str(error.detail)
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


def _first_field(detail: Any, path: str = "") -> tuple[str | None, str]:
    if isinstance(detail, dict):
        key, inner = next(iter(detail.items()))
        step = "" if key == "non_field_errors" else str(key)
        return _first_field(inner, ".".join(filter(None, (path, step))))
    if isinstance(detail, list):
        return _first_field(detail[0], path)
    return path or None, str(detail)
