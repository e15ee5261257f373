"""What a repository is sent: its page."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from apps.accounts.services import actor_of
from apps.core.access import requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Open, Permission
from apps.platforms import selectors
from apps.platforms.models import Repository
from apps.platforms.participation import (
    Choice,
    announce_window,
    change_participation,
    participation_of,
    withdraw_window,
)
from apps.platforms.participation_forms import ParticipationForm, WindowForm
from apps.platforms.policy import WINDOW_RULES

_TEMPLATE = "platforms/repository_participation.html"


@requires(Open.SIGNED_IN)
@require_http_methods(["GET", "POST"])
def participation(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    """`/repositories/<owner>/<name>/participation/`: which events it is sent, how many at once, and when none.

    For members of its platform and maintainers. POST `act`: `choose`, `announce` (a maintenance window), `withdraw`
    (`window`).
    """
    repository = selectors.repository_or_404(owner, name)
    if not selectors.may_on_platform(request.user, Permission.PARTICIPATION_CHANGE, repository.platform):
        raise PermissionDenied("Only who speaks for the platform, or a maintainer, may choose what it is sent.")
    if request.method == "GET":
        return _page(request, repository)
    match request.POST.get("act"):
        case "choose":
            return _choose(request, repository)
        case "announce":
            return _announce(request, repository)
        case "withdraw":
            return _withdraw(request, repository)
        case _:
            raise Http404


def _choose(request: HttpRequest, repository: Repository) -> HttpResponse:
    form = _choice_form(repository, request.POST)
    if not form.is_valid():
        return _page(request, repository, form=form)
    try:
        event = change_participation(
            repository=repository,
            choice=form.choice,
            expected_revision=form.cleaned_data["expected_revision"],
            actor=actor_of(request.user),
            now=now(),
        )
    except Problem as problem:
        return _page(request, repository, form=_with(problem, form), status=problem.row.status)
    messages.success(request, "It holds from now on." if event else "That holds already.")
    return redirect("platforms:participation", repository.owner, repository.name)


def _announce(request: HttpRequest, repository: Repository) -> HttpResponse:
    form = WindowForm(request.POST)
    if not form.is_valid():
        return _page(request, repository, window_form=form)
    try:
        announce_window(repository=repository, actor=actor_of(request.user), now=now(), **form.cleaned_data)
    except Problem as problem:
        return _page(request, repository, window_form=_with(problem, form), status=problem.row.status)
    messages.success(request, "The window is announced on the platform's page.")
    return redirect("platforms:participation", repository.owner, repository.name)


def _withdraw(request: HttpRequest, repository: Repository) -> HttpResponse:
    window = selectors.window_or_404(repository, request.POST.get("window", ""))
    if withdraw_window(window=window, actor=actor_of(request.user), now=now()):
        messages.success(request, "The window is withdrawn.")
    return redirect("platforms:participation", repository.owner, repository.name)


def _with(problem: Problem, form: Any) -> Any:
    form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
    return form


def _choice_form(repository: Repository, data: Any = None) -> ParticipationForm:
    known = participation_of(repository)
    return ParticipationForm(data, choice=Choice.of(known), revision=known.revision if known else 0)


def _page(
    request: HttpRequest,
    repository: Repository,
    *,
    form: ParticipationForm | None = None,
    window_form: WindowForm | None = None,
    status: int = 200,
) -> HttpResponse:
    moment = now()
    context = {
        "repository": repository,
        "form": form or _choice_form(repository),
        "window_form": window_form or WindowForm(),
        "windows": list(selectors.windows_of(repository.platform, now=moment).filter(repository=repository)),
        "rules": WINDOW_RULES,
        "now": moment,
    }
    return render(request, _TEMPLATE, context, status=status)
