"""The operators' page of check runs that GitHub does not show as they should be."""

import uuid

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.accounts.services import actor_of
from apps.checks import selectors, services
from apps.core.access import requires
from apps.core.clock import now
from apps.core.permissions import Permission
from apps.core.rendering import render_page

PAGE = 50
RERUNS_SHOWN = 50


@requires(Permission.CHECK_RESEND)
def checks(request: HttpRequest) -> HttpResponse:
    """`/checks/`: check runs that wait or were given up, each with why, and a button that sends the latter once more;
    re-runs that were not passed on. `?page=`."""
    context = {
        "page": Paginator(selectors.unsent_checks(), PAGE).get_page(request.GET.get("page")),
        "reruns": list(selectors.unsent_reruns()[:RERUNS_SHOWN]),
        "may_publish": selectors.may_publish(),
        "now": now(),
    }
    return render_page(request, "checks/check_list.html", context)


@requires(Permission.CHECK_RESEND)
@require_POST
def resend(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`POST /checks/<id>/resend/`: send a check run that was given up once more."""
    check = selectors.check_or_404(public_id)
    services.resend_check(check=check, actor=actor_of(request.user), now=now())
    messages.success(request, f"{check.name} is sent once more.")
    return redirect("checks:checks")
