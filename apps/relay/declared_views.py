"""What maintainers declare of a repository's jobs: anyone reads it, maintainers declare and withdraw."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from apps.accounts.services import actor_of
from apps.core.access import public
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.core.rendering import render_page
from apps.platforms.models import Repository
from apps.platforms.selectors import repository_or_404
from apps.relay.declared import declare_outcome, withdraw_outcome
from apps.relay.declared_forms import DeclareForm, WithdrawForm
from apps.relay.selectors import declared_of, declared_or_404


@public
@require_http_methods(["GET", "POST"])
def declared(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    """`/repositories/<owner>/<name>/declared/`: jobs that are meant to go wrong, or say nothing. POST `act` for
    maintainers: `declare` (`workflow`, `job_name`, `outcome`, `reason`, `starts_at`, `ends_at`), `withdraw`
    (`declared`, `reason`)."""
    user: Any = request.user
    repository = repository_or_404(owner, name)
    may_declare = user.is_authenticated and user.may(Permission.OUTCOME_DECLARE)
    form = DeclareForm()
    if request.method == "POST":
        if not may_declare:
            raise PermissionDenied("Only maintainers declare what a job is meant to be.")
        if request.POST.get("act") == "withdraw":
            _withdraw(request, repository)
            return redirect("relay_pages:declared", owner=repository.owner, name=repository.name)
        form = DeclareForm(request.POST)
        if form.is_valid() and _declare(user, repository, form):
            messages.success(request, "It is declared.")
            return redirect("relay_pages:declared", owner=repository.owner, name=repository.name)
    context = {
        "repository": repository,
        "rows": list(declared_of(repository)),
        "may_declare": may_declare,
        "form": form,
        "now": now(),
    }
    return render_page(request, "relay/declared.html", context)


def _withdraw(request: HttpRequest, repository: Repository) -> None:
    user: Any = request.user
    form = WithdrawForm(request.POST)
    found = declared_or_404(repository, request.POST.get("declared", ""))
    if not form.is_valid():
        messages.error(request, "Nothing is withdrawn: say why.")
        return
    withdraw_outcome(declared=found, reason=form.cleaned_data["reason"], actor=actor_of(user), now=now())
    messages.success(request, "It is withdrawn.")


def _declare(user: Any, repository: Repository, form: DeclareForm) -> bool:
    """Whether it was declared; if not, the form says why."""
    try:
        declare_outcome(repository=repository, actor=actor_of(user), now=now(), **form.values())
    except Problem as problem:
        form.add_error(problem.field, problem.detail)
        return False
    return True
