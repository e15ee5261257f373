"""Pages of notices and temporary downgrades."""

import uuid
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from apps.audit.selectors import events_about
from apps.core.access import is_allowed, public, requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.core.rendering import render_page
from apps.core.workdays import named
from apps.levels import downgrades, falling, falling_selectors
from apps.levels.falling_enums import DowngradeState, FallState
from apps.levels.falling_forms import (
    AnswerForm,
    DemoteForm,
    DowngradeFilterForm,
    DowngradeForm,
    NoticeFilterForm,
    ReasonForm,
)
from apps.platforms.policy import CHECKS_FROM, LEVELS
from apps.platforms.selectors import may_on_platform, repository_or_404

PAGE = 50
Form = forms.Form


@public
@require_safe
def notices(request: HttpRequest) -> HttpResponse:
    """`/notices/?state=&platform=&page=`: who does not show what their level asks for, newest first."""
    form = NoticeFilterForm(request.GET)
    page = Paginator(falling_selectors.notices(**form.given()), PAGE).get_page(request.GET.get("page"))
    return render_page(request, "levels/notice_list.html", {"page": page, "form": form, "now": now()})


@public
@require_http_methods(["GET", "POST"])
def notice(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/notices/<id>/`: what was not met, until when, the way back. POST `act`: `answer` (`text`) for the platform's
    members; `lift` (`reason`) and `demote` (`reason`, `device`, `expected_level`, `seen_night`) for maintainers."""
    found = falling_selectors.notice_or_404(public_id)
    user: Any = request.user
    nights = falling.newest_nights(found)
    may = {
        "answer": may_on_platform(user, Permission.NOTICE_ANSWER, found.repository.platform),
        "lift": is_allowed(user, Permission.LEVEL_CHANGE),
        "demote": is_allowed(user, Permission.LEVEL_CHANGE),
    }
    shown: dict[str, Form] = {
        "answer": AnswerForm(auto_id="answer-%s"),
        "lift": ReasonForm(auto_id="lift-%s"),
        "demote": DemoteForm.beside(found, nights[0].day if nights else None),
    }
    sent: dict[str, tuple[type[Form], Callable[..., object], str]] = {
        "answer": (AnswerForm, falling.answer_notice, "The answer stands on the notice."),
        "lift": (ReasonForm, falling.lift_notice, "The notice is lifted."),
        "demote": (DemoteForm, falling.demote, "The repository is demoted."),
    }
    status = 200
    if request.method == "POST":
        act = request.POST.get("act", "")
        if act not in sent:
            raise Http404
        if not may[act]:
            raise PermissionDenied("Members of the platform answer a notice, maintainers decide about it.")
        kind, verb, said = sent[act]
        form = shown[act] = kind(request.POST, auto_id=f"{act}-%s")
        status = _do(form, lambda values: verb(notice=found, by=user, now=now(), **values))
        if status == 200 and not form.errors:
            messages.success(request, said)
            return redirect("levels:notice", public_id=public_id)
    moment = now()
    is_open = found.state == FallState.OPEN
    context = {
        "notice": found,
        "calendar": named(found.calendar),
        "nights": nights[: found.dwell_days],
        "answers": found.answers.all(),
        "events": events_about("fallnotice", str(found.public_id)),
        "is_over": is_open and found.deadline_at <= moment,
        "lower": LEVELS[found.level - 1].code,
        "forms": {
            act: form
            for act, form in shown.items()
            if may[act] and ((is_open and (act != "demote" or found.deadline_at <= moment)) or form.errors)
        },
        "now": moment,
    }
    return render(request, "levels/notice_detail.html", context, status=status)


def _do(form: Form, verb: Callable[[dict[str, Any]], object]) -> int:
    """Do what a form asks for, and answer the status; the form says why it was not done."""
    if not form.is_valid():
        return 200
    try:
        verb(form.cleaned_data)
    except Problem as problem:
        visible = {field.name for field in form.visible_fields()}
        form.add_error(problem.field if problem.field in visible else None, problem.detail)
        return problem.row.status
    return 200


@public
@require_safe
def downgrade_list(request: HttpRequest) -> HttpResponse:
    """`/downgrades/?state=&platform=&page=`: repositories that were taken down for a while, newest first."""
    form = DowngradeFilterForm(request.GET)
    page = Paginator(falling_selectors.downgrades(**form.given()), PAGE).get_page(request.GET.get("page"))
    return render_page(request, "levels/downgrade_list.html", {"page": page, "form": form, "now": now()})


@public
@require_http_methods(["GET", "POST"])
def downgrade(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/downgrades/<id>/`: why, until when it is decided. POST `act`, `reason` for maintainers: `undo`, `confirm`."""
    found = falling_selectors.downgrade_or_404(public_id)
    user: Any = request.user
    may = is_allowed(user, Permission.LEVEL_CHANGE)
    verbs: dict[str, tuple[Callable[..., object], str]] = {
        "undo": (downgrades.undo_downgrade, f"{found.repository.full_name} is at {found.from_code} again."),
        "confirm": (downgrades.confirm_downgrade, "The downgrade is formal."),
    }
    shown: dict[str, Form] = {act: ReasonForm(auto_id=f"{act}-%s") for act in verbs}
    status = 200
    if request.method == "POST":
        act = request.POST.get("act", "")
        if act not in verbs:
            raise Http404
        if not may:
            raise PermissionDenied("Only maintainers decide about a downgrade.")
        verb, said = verbs[act]
        form = shown[act] = ReasonForm(request.POST, auto_id=f"{act}-%s")
        status = _do(form, lambda values: verb(downgrade=found, by=user, now=now(), **values))
        if status == 200 and not form.errors:
            messages.success(request, said)
            return redirect("levels:downgrade", public_id=public_id)
    moment = now()
    is_open = found.state == DowngradeState.OPEN
    context = {
        "downgrade": found,
        "calendar": named(found.calendar),
        "events": events_about("downgrade", str(found.public_id)),
        "is_overdue": is_open and found.deadline_at <= moment,
        "forms": {act: form for act, form in shown.items() if may and (is_open or form.errors)},
        "to_undo": f"Back at {found.from_code}, at once.",
        "to_confirm": f"It stays at {found.to_code}; what {found.from_code} asks for leads back.",
        "now": moment,
    }
    return render(request, "levels/downgrade_detail.html", context, status=status)


@requires(Permission.LEVEL_CHANGE)
@require_http_methods(["GET", "POST"])
def make_downgrade(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    """`/repositories/<owner>/<name>/downgrade/`: take a repository at L3 or L4 down at once."""
    user: Any = request.user
    repository = repository_or_404(owner, name)
    if repository.level < CHECKS_FROM:
        raise Http404
    form = DowngradeForm(repository, request.POST if request.method == "POST" else None)
    status = 200
    if request.method == "POST":
        made: list[Any] = []
        status = _do(
            form,
            lambda values: made.append(downgrades.downgrade(repository=repository, by=user, now=now(), **values)),
        )
        if made:
            messages.success(request, f"{repository.full_name} is at {made[0].to_code} now.")
            return redirect("levels:downgrade", public_id=made[0].public_id)
    return render(request, "levels/downgrade_form.html", {"repository": repository, "form": form}, status=status)
