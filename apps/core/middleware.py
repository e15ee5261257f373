"""Turns exceptions into the answers of core.errors; lets a demo's requests pretend their time."""

import logging

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.shortcuts import render

from apps.core import clock
from apps.core.errors import Problem, is_machine_route, problem_response

log = logging.getLogger(__name__)


def as_problem(error: Exception) -> Problem | None:
    """The refusal that an exception of ours, of Django or of the database means; None for a fault of the hub."""
    match error:
        case Problem():
            return error
        case UnreadablePostError():
            return Problem("malformed", "The body stopped before its Content-Length: send it again, whole.")
        case RequestDataTooBig():
            return Problem("too_large", str(error))
        case BadRequest() | SuspiciousOperation():
            return Problem("malformed", str(error))
        case PermissionDenied():
            return Problem("not_permitted", str(error) or "You may not do this.")
        case Http404():
            return Problem("not_found", "There is nothing at this address, or not for you.")
        case OperationalError() | InterfaceError():
            log.error("database: %s", error)
            return Problem("unavailable", "The database does not answer.", headers={"Retry-After": "5"})
    return None


def problem_page(request: HttpRequest, problem: Problem) -> HttpResponse:
    """The refusal as a page. Where the hub itself failed nobody asks who is signed in: that would fail as well."""
    if problem.row.status >= 500:
        request.user = AnonymousUser()
    response = render(request, "errors/problem.html", {"problem": problem}, status=problem.row.status)
    for name, value in problem.headers.items():
        response.headers[name] = value
    return response


# The longest form, evidence and all, is a tenth of it.
FORM_MAX_BYTES = 1_000_000


# What a page says without Django's help: it would log a refusal with the whole traceback.
_ON_PAGES = Problem | PermissionDenied | OperationalError | InterfaceError


class ProblemMiddleware:
    """Machine routes answer problem+json to everything; pages show our Problem as a page and leave Django the rest."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if problem := _unreadable(request):
            return problem_response(problem) if is_machine_route(request) else problem_page(request, problem)
        response = self.get_response(request)
        # A page that says nothing of its own is whoever's it was made for, and nobody keeps it.
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        problem = as_problem(error)
        if problem is None:
            if not is_machine_route(request):
                return None
            log.exception("unhandled on %s", request.path, exc_info=error)
            problem = Problem("internal", "The hub failed; its operators can see why.")
        elif not is_machine_route(request) and not isinstance(error, _ON_PAGES):
            return None
        if is_machine_route(request):
            return problem_response(problem)
        return problem_page(request, problem)


def _unreadable(request: HttpRequest) -> Problem | None:
    """Bodies that Django would take for empty, or read to the end for nothing: no page of the hub takes files."""
    if "HTTP_TRANSFER_ENCODING" in request.META:
        return Problem("malformed", "Content-Length: is missing; send the body whole, not chunked.", "Content-Length")
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not is_machine_route(request) and length.isdecimal() and int(length) > FORM_MAX_BYTES:
        return Problem("too_large", f"The form has {length} bytes, at most {FORM_MAX_BYTES} are read.")
    return None


CLOCK_HEADER = "X-AccelHub-Clock"


class ClockMiddleware:
    """A demo's request may say when it happens: `X-AccelHub-Clock: <ISO time, UTC>`, in the past. Outside demo mode
    the header is refused, so that nobody believes that it was heard."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        text = request.META.get("HTTP_X_ACCELHUB_CLOCK")
        if text is None:
            return self.get_response(request)
        if not settings.DEMO:
            return _refuse_clock("only a demo takes this header. Leave it out.")
        try:
            moment = clock.read(text)
        except ValueError as error:
            return _refuse_clock(str(error))
        with clock.at(moment):
            return self.get_response(request)


def _refuse_clock(detail: str) -> HttpResponse:
    return problem_response(Problem("malformed", f"{CLOCK_HEADER}: {detail}", CLOCK_HEADER))
