"""Pages about tests: search by name, and what is left to do."""

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.core.access import public
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.rendering import render_page
from apps.results.backlog import BACKLOG_DAYS
from apps.results.backlog import backlog as left_to_do
from apps.results.forms import TestSearchForm
from apps.results.history import SEARCHED_MAX, tests_found

BACKLOG_PAGE = 50


@public
@require_safe
def tests(request: HttpRequest) -> HttpResponse:
    """`/tests/?q=`: tests whose file, class and name hold every word."""
    form = TestSearchForm(request.GET)
    words = form.words()
    context: dict[str, Any] = {"form": form, "words": words, "most": SEARCHED_MAX}
    if words:
        try:
            context["tests"] = tests_found(words, request.user)
        except Problem as problem:
            form.add_error("q", problem.detail)
    return render_page(request, "results/test_list.html", context)


@public
@require_safe
def backlog(request: HttpRequest) -> HttpResponse:
    """`/backlog/?page=`: unresolved failures and unexplained skips of each platform and variant."""
    moment = now()
    page = Paginator(left_to_do(moment), BACKLOG_PAGE).get_page(request.GET.get("page"))
    return render_page(request, "results/backlog.html", {"page": page, "days": BACKLOG_DAYS, "now": moment})
