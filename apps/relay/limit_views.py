"""The limits that a repository declares for its silent jobs."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from apps.accounts.services import actor_of
from apps.core.access import requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Open, Permission
from apps.platforms.models import Repository
from apps.platforms.selectors import may_on_platform, repository_or_404
from apps.relay.forms import TimeLimitForm
from apps.relay.policy import SILENT_LIMIT_SECONDS
from apps.relay.selectors import limit_or_404, limits_of
from apps.relay.time_limits import declare_limit, remove_limit


@requires(Open.SIGNED_IN)
@require_http_methods(["GET", "POST"])
def limits(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    """`/repositories/<owner>/<name>/limits/`: how long its jobs may be silent. POST `act` for members and maintainers:
    `declare` (`job_name`, `minutes`), `remove` (`limit`)."""
    user: Any = request.user
    repository = repository_or_404(owner, name)
    may_change = may_on_platform(user, Permission.LIMIT_CHANGE, repository.platform)
    form = TimeLimitForm()
    if request.method == "POST":
        if not may_change:
            raise PermissionDenied("Only who speaks for the platform, or a maintainer, may change its limits.")
        if request.POST.get("act") == "remove":
            limit = limit_or_404(repository, request.POST.get("limit", ""))
            remove_limit(limit=limit, actor=actor_of(user), now=now())
            messages.success(request, "The limit is removed.")
            return redirect("relay_pages:limits", owner=repository.owner, name=repository.name)
        form = TimeLimitForm(request.POST)
        if form.is_valid() and _declare(user, repository, form):
            messages.success(request, "The limit is declared.")
            return redirect("relay_pages:limits", owner=repository.owner, name=repository.name)
    context = {
        "repository": repository,
        "limits": list(limits_of(repository)),
        "default_seconds": SILENT_LIMIT_SECONDS,
        "may_change": may_change,
        "form": form,
        "now": now(),
    }
    return render(request, "relay/time_limits.html", context)


def _declare(user: Any, repository: Repository, form: TimeLimitForm) -> bool:
    """Whether it was declared; if not, the form says why."""
    values = form.cleaned_data
    try:
        declare_limit(
            repository=repository,
            job_name=values["job_name"],
            seconds=values["minutes"] * 60,
            actor=actor_of(user),
            now=now(),
        )
    except Problem as problem:
        form.add_error(problem.field, problem.detail)
        return False
    return True
