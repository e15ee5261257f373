"""Pages of appeals."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from apps.appeals import independence, policy, selectors, services
from apps.appeals.contested import CONTESTABLE, whose
from apps.appeals.enums import Outcome, State
from apps.appeals.forms import AppealFilterForm, DecideForm, OpenForm, PauseForm, VerbForm
from apps.appeals.models import Appeal
from apps.audit.enums import Action
from apps.audit.selectors import decision_or_404, events_about
from apps.core.access import is_allowed, public, requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Open, Permission
from apps.core.rendering import render_page
from apps.platforms.selectors import repository_or_404
from apps.policies.policy import LIMITS
from apps.policies.selectors import policy_at
from apps.relay.models import Job
from apps.relay.selectors import jobs as public_jobs
from apps.results.metrics import PULL_REQUESTS

PAGE = 50
# So many of the newest red jobs are offered as boxes; others are named by their ids.
OFFERED = 50
_INT63 = 2**63


@public
@require_safe
def appeals(request: HttpRequest) -> HttpResponse:
    """`/appeals/?platform=&state=&overdue=&page=`: every appeal, the newest first."""
    moment, form = now(), AppealFilterForm(request.GET)
    page = Paginator(selectors.appeals_found(form.given(), now=moment), PAGE).get_page(request.GET.get("page"))
    rows = [_row(one, moment) for one in page.object_list]
    in_force = policy_at(moment).limits
    context = {
        "form": form,
        "page": page,
        "rows": rows,
        "rules": policy.RULES.items(),
        "limits": [(name, row, in_force[name]) for name, row in LIMITS.items() if row.part == "appeals"],
        "now": moment,
    }
    return render_page(request, "appeals/appeal_list.html", context)


def _row(one: Appeal, moment: Any) -> tuple[Appeal, State, bool]:
    state = policy.state_at(one.state, one.paused_until, moment)
    return one, state, policy.is_overdue(one.state, one.deadline_at, moment)


@requires(Open.SIGNED_IN)
@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """`/appeals/new/?decision=` or `?repository=&figure=&days=&job=`: contest a decision or a number, for a platform's
    members."""
    moment, user = now(), request.user
    assert user.is_authenticated, "the route asks for it"
    seq = request.GET.get("decision", "")
    if seq:
        if not (seq.isascii() and seq.isdigit() and int(seq[:20]) < _INT63):
            raise Http404
        decision = decision_or_404(int(seq))
        try:
            platform, repository = whose(decision)
        except Problem as problem:
            raise Http404(problem.detail) from None
        then, figure = CONTESTABLE[Action(decision.action)].then, None
    else:
        owner, _, name = request.GET.get("repository", "").partition("/")
        repository, decision, then = repository_or_404(owner, name), None, ""
        platform, figure = repository.platform, _figure(request, repository)
    if not services.is_member(user, platform):
        raise PermissionDenied(f"Only who speaks for {platform.name} may appeal on its behalf.")
    offered = _offered(repository, platform.pk, request.GET.get("job", ""))
    form = OpenForm(request.POST or None, jobs=offered, is_decision=decision is not None)
    if request.method == "POST" and form.is_valid():
        said = form.cleaned_data
        what = services.Said(said["claim"], said["words"], said["links"], form.chosen())
        try:
            if decision is not None:
                made = services.appeal_decision(decision=decision, said=what, by=user, now=moment)
            else:
                assert figure is not None, "one of them is contested"
                made = services.appeal_figure(figure=figure, said=what, by=user, now=moment)
        except Problem as problem:
            field = {"jobs": "others"}.get(problem.field or "", problem.field)
            form.add_error(field if field in form.fields else None, problem.detail)
        else:
            messages.success(request, f"The appeal is open: it is decided by {made.deadline_at:%Y-%m-%d}.")
            return redirect("appeals:appeal", public_id=made.public_id)
    context = {
        "form": form,
        "platform": platform,
        "decision": decision,
        "then": then,
        "figure": figure,
        "stood": services.stood(figure, moment) if figure else "",
        "limits": policy_at(moment).limits,
    }
    return render(request, "appeals/appeal_form.html", context)


def _figure(request: HttpRequest, repository: Any) -> services.Figure:
    name, days = request.GET.get("figure", policy.FIGURES[0]), request.GET.get("days", "")
    if name not in policy.FIGURES:
        raise Http404
    known = days in map(str, policy.WINDOWS)
    return services.Figure(repository, name, int(days) if known else max(policy.WINDOWS))


def _offered(repository: Any, platform_pk: int, asked: str) -> list[Job]:
    """The newest ended jobs that no figure counts as a success, the one that was asked about first."""
    ended = public_jobs().filter(repository__platform=platform_pk, event_type=PULL_REQUESTS, status="completed")
    if repository is not None:
        ended = ended.filter(repository=repository)
    free = ended.exclude(appealed_rows__is_freed=False)
    red = list(free.exclude(bucket="success")[:OFFERED])
    try:
        first = free.filter(public_id=uuid.UUID(asked)) if asked else free.none()
    except ValueError:
        first = free.none()
    chosen = list(first)
    return [*chosen, *(job for job in red if job not in chosen)]


@public
@require_http_methods(["GET", "POST"])
def appeal(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/appeals/<id>/`: one appeal, its rows and its log. POST `act`: `pause` (`days`), `withdraw`, `decide`
    (`outcome`, `accepted`), each with `revision` and `reason`, for who may."""
    found = selectors.appeal_or_404(public_id)
    moment, user = now(), request.user
    rows = list(selectors.rows_of(found))
    act = request.POST.get("act", "")
    said = {act: request.POST} if request.method == "POST" else {}
    start = {"revision": found.revision}
    answers: dict[str, Any] = {
        "pause": PauseForm(said.get("pause"), initial=start, auto_id="pause-%s"),
        "withdraw": VerbForm(said.get("withdraw"), initial=start, auto_id="withdraw-%s"),
        "decide": DecideForm(said.get("decide"), initial=start, rows=rows, auto_id="decide-%s"),
    }
    if request.method == "POST":
        if not user.is_authenticated or act not in answers:
            raise PermissionDenied("Sign in as somebody who may.")
        if answers[act].is_valid() and _act(found, act, answers[act], user, moment):
            messages.success(request, "Done: it stands in the log.")
            return redirect("appeals:appeal", public_id=public_id)
    found = selectors.appeal_or_404(public_id)
    is_open = found.state == State.OPEN
    speaks = is_open and services.is_member(user, found.platform)
    may_decide = is_open and is_allowed(user, Permission.APPEAL_DECIDE)
    recusal = independence.dependence_of(user, found) if may_decide else ""  # type: ignore[arg-type]
    decides = may_decide and not recusal
    context = {
        "appeal": found,
        "state": policy.state_at(found.state, found.paused_until, moment),
        "is_overdue": policy.is_overdue(found.state, found.deadline_at, moment),
        "rows": rows,
        "events": events_about("appeal", str(found.public_id)),
        "recusal": recusal,
        "pause": answers["pause"] if (speaks or decides) and found.paused_at is None else None,
        "withdraw": answers["withdraw"] if speaks else None,
        "decide": answers["decide"] if decides else None,
        "now": moment,
    }
    return render(request, "appeals/appeal_detail.html", context)


def _act(found: Appeal, act: str, form: forms.Form, user: Any, moment: Any) -> bool:
    said: dict[str, Any] = dict(form.cleaned_data)
    if act == "decide":
        said["outcome"] = Outcome(said["outcome"])
        said["accepted"] = [uuid.UUID(key) for key in said.get("accepted", [])]
    verb = {"pause": services.pause_appeal, "withdraw": services.withdraw_appeal, "decide": services.decide_appeal}
    try:
        verb[act](appeal=found, by=user, now=moment, **said)  # type: ignore[operator]
    except Problem as problem:
        if problem.code == "not_permitted":
            raise PermissionDenied(problem.detail) from None
        shown = problem.field if problem.field in form.fields and problem.field != "revision" else None
        form.add_error(shown, problem.detail)
        return False
    return True
