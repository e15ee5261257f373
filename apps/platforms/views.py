"""Acts on platforms: a change of level, a new name."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from apps.accounts.services import actor_of
from apps.audit.enums import Action
from apps.audit.models import Event
from apps.core.access import requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.platforms import authority
from apps.platforms.forms import LevelForm, RenameForm
from apps.platforms.models import Repository
from apps.platforms.policy import LEVELS, Level, consequences, direct_targets, suggested_target
from apps.platforms.selectors import edits_to_show, platform_or_404, repository_or_404
from apps.platforms.services import change_level, rename_platform


@requires(Permission.LEVEL_CHANGE)
@require_http_methods(["GET", "POST"])
def level(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    """`/repositories/<owner>/<name>/level/`: shows what each level would change; POST sets it.

    `?to=<number>` chooses the level that is shown and set; left out, it is the next one up, else the next one down.
    """
    repository = repository_or_404(owner, name)
    targets = direct_targets(repository.level)
    chosen = request.POST.get("level") or request.GET.get("to", "")
    target = next((level for level in targets if str(level.number) == chosen), suggested_target(repository.level))
    if request.method == "POST" and request.POST.get("expected_level") != str(repository.level):
        # Decided on a level that is no longer the one: nothing is done, what was written stays, the page says why.
        fresh = request.POST.dict() | {"level": str(target.number), "expected_level": str(repository.level)}
        form = LevelForm(fresh, repository=repository, target=target)
        form.add_error(None, f"{repository.full_name} is at {repository.level_code} now: look again, then decide.")
        return render(request, "platforms/repository_level.html", _level_context(repository, form, target), status=409)
    form = LevelForm(request.POST or None, repository=repository, target=target)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        try:
            event = change_level(
                repository=repository,
                level=values["level"],
                reason=values["reason"],
                evidence=values["evidence"],
                device=values.get("device", ""),
                expected_level=values["expected_level"],
                actor=actor_of(request.user),
                now=now(),
            )
        except Problem as problem:
            form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
        else:
            messages.success(request, _said(event, repository, LEVELS[values["level"]].code))
            return redirect("public:platform", slug=repository.platform.slug)
    return render(request, "platforms/repository_level.html", _level_context(repository, form, target))


def _said(event: Event, repository: Repository, code: str) -> str:
    if event.action == Action.LEVEL_DECIDED:
        return f"Decision #{event.seq}: {repository.full_name} is at {code} when upstream's file says so."
    return f"Decision #{event.seq}: {repository.full_name} is now at {code}."


def _level_context(repository: Repository, form: LevelForm, target: Level) -> dict[str, object]:
    return {
        "repository": repository,
        "form": form,
        "targets": direct_targets(repository.level),
        "target": target,
        "file": authority.address() if authority.is_file() else None,
        "waiting": edits_to_show(now=now(), repository_ids=[repository.pk]),
        "consequences": consequences(repository.level, target.number),
    }


@requires(Permission.PLATFORM_RENAME)
@require_http_methods(["GET", "POST"])
def rename(request: HttpRequest, slug: str) -> HttpResponse:
    """`/platforms/<slug>/name/`: give an imported platform the name people know."""
    platform = platform_or_404(slug)
    form = RenameForm(request.POST or None, platform=platform)
    if request.method == "POST" and form.is_valid():
        try:
            rename_platform(platform=platform, actor=actor_of(request.user), now=now(), **form.cleaned_data)
        except Problem as problem:
            form.add_error(problem.field, problem.detail)
        else:
            return redirect("public:platform", slug=platform.slug)
    return render(request, "platforms/platform_rename.html", {"platform": platform, "form": form})
