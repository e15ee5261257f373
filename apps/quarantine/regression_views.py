"""The page of tests that fail always."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.core.access import public
from apps.core.clock import now
from apps.core.rendering import render_page
from apps.quarantine.forms import RegressionFilterForm
from apps.quarantine.regressions import regressions
from apps.quarantine.rules import in_force

PAGE = 50


@public
@require_safe
def regression_list(request: HttpRequest) -> HttpResponse:
    """`/regressions/?platform=&page=`: tests that are red in every run, newest first."""
    moment = now()
    form = RegressionFilterForm(request.GET)
    page = Paginator(regressions(request.user, form.given()), PAGE).get_page(request.GET.get("page"))
    context = {"form": form, "page": page, "now": moment, "rules": in_force(moment)}
    return render_page(request, "quarantine/regression_list.html", context)
