"""Pages and probes that belong to no domain: error answers, the table of error codes, health."""

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from redis import Redis, RedisError

from apps.core import rounds
from apps.core.access import public
from apps.core.clock import now
from apps.core.errors import CODES, Problem, is_machine_route, problem_response
from apps.core.middleware import problem_page


def _error(request: HttpRequest, problem: Problem) -> HttpResponse:
    if is_machine_route(request):
        return problem_response(problem)
    return problem_page(request, problem)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(request, Problem("malformed", "The request could not be read."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(request, Problem("not_permitted", str(exception) or "You may not do this."))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(request, Problem("not_found", "There is nothing at this address, or not for you."))


def server_error(request: HttpRequest) -> HttpResponse:
    return _error(request, Problem("internal", "The hub failed; its operators can see why."))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _error(request, Problem("csrf", reason or "The form's token is missing or old."))


@public
def error_code(request: HttpRequest, code: str) -> HttpResponse:
    """`/docs/errors/<code>`: what a refusal means and what to do. The address in every problem's `type`."""
    if code not in CODES:
        raise Http404
    return render(request, "errors/code.html", {"code": code, "row": CODES[code], "codes": CODES})


@public
def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the process answers at all."""
    return JsonResponse({"ok": True})


@public
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when PostgreSQL and Redis answer, else 503; `failing` names the part: `postgresql`, `redis`.

    `overdue` names the scheduled tasks that have not done their work for long: no reason to send requests elsewhere.
    """
    from django.conf import settings

    failing: list[str] = []
    overdue: list[str] = []
    try:
        overdue = rounds.overdue(now=now())
    except Exception:  # any failure to answer is the finding itself
        failing.append("postgresql")
    try:
        with Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2) as redis:
            redis.ping()
    except (RedisError, OSError):
        failing.append("redis")
    answer = {"ok": not failing, "failing": failing, "overdue": overdue}
    return JsonResponse(answer, status=503 if failing else 200)
