"""The policy's versions, and the draft of the next: anyone reads them, maintainers edit and decide."""

import uuid
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.access import public
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Open, Permission
from apps.core.rendering import render_page
from apps.governance.effects import effects_of, logged, summary
from apps.governance.policy_forms import DraftForm, InForceForm, TitleForm
from apps.policies import services
from apps.policies.models import DraftState, PolicyDraft, PolicyVersion
from apps.policies.policy import LIMITS, OUTCOMES, Policy, differences, written
from apps.policies.selectors import draft_or_404, drafts, numbered, policy_at, policy_of, rows_of, version_at, versions


def _may_change(user: Any) -> bool:
    return user.is_authenticated and user.may(Permission.POLICY_CHANGE)


@public
@require_http_methods(["GET", "POST"])
def policy_versions(request: HttpRequest) -> HttpResponse:
    """`/policy/versions/`: every version with what it changed, and the open drafts. POST `title` for maintainers begins
    a draft with the rows in force."""
    user: Any = request.user
    form = TitleForm()
    if request.method == "POST":
        if not _may_change(user):
            raise PermissionDenied("Only maintainers write drafts of the policy.")
        form = TitleForm(request.POST)
        if form.is_valid():
            draft = services.open_draft(title=form.cleaned_data["title"], by=user, now=now())
            return redirect("governance:policy_draft", public_id=draft.public_id)
    moment = now()
    found = versions()
    context = {
        "rows": [(version, differences(numbered(version.number - 1), policy_of(version))) for version in found],
        "in_force": policy_at(moment).number,
        "drafts": list(drafts()),
        "may_change": _may_change(user),
        "form": form,
        "now": moment,
    }
    return render_page(request, "governance/policy_versions.html", context)


@public
@require_http_methods(["GET"])
def policy_version(request: HttpRequest, number: int) -> HttpResponse:
    """`/policy/versions/<number>/`: all rows of one version; 0 is what ships."""
    policy = numbered(number)
    version = PolicyVersion.objects.filter(number=number).first()
    context = {"number": number, "version": version, "now": now(), **printed(policy)}
    return render_page(request, "governance/policy_version.html", context)


def printed(policy: Policy) -> dict[str, Any]:
    """A policy as pages print it."""
    return {
        "criteria": policy.criteria,
        "handling": [(name, says, policy.handling[name].asks) for name, says in OUTCOMES.items()],
        "limits": [(name, limit, policy.limits[name]) for name, limit in LIMITS.items()],
    }


@public
@require_http_methods(["GET", "POST"])
def policy_draft(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/policy/drafts/<id>/`: what a draft changes and what it would do to today's field. POST `act` for maintainers:
    `change` (its rows), `drop`, `decide` (`from_at`, `reason`), each with the `revision` that was looked at."""
    user: Any = request.user
    draft = draft_or_404(public_id)
    rows = DraftForm(draft.values, initial={"title": draft.title, "revision": draft.revision})
    decide = InForceForm(initial={"revision": draft.revision}, auto_id="decide-%s")
    if request.method == "POST":
        if not _may_change(user):
            raise PermissionDenied("Only maintainers write drafts of the policy.")
        act = request.POST.get("act")
        if act == "change":
            rows = DraftForm(draft.values, request.POST)
            done = rows.is_valid() and _change(draft, rows)
        elif act == "decide":
            decide = InForceForm(request.POST, auto_id="decide-%s")
            done = decide.is_valid() and _decide(draft, decide, user)
        elif act == "drop":
            done = _drop(request, draft)
        else:
            raise Http404
        if done:
            messages.success(request, _DONE[act])
            return redirect("governance:policy_draft", public_id=draft.public_id)
        draft.refresh_from_db()
    return _page(request, draft, rows, decide)


_DONE = {"change": "The draft is written.", "decide": "The policy is decided.", "drop": "The draft is given up."}


def _page(request: HttpRequest, draft: PolicyDraft, rows: DraftForm, decide: InForceForm) -> HttpResponse:
    moment = now()
    policy = rows_of(draft)
    changes = differences(numbered(draft.base_number), policy)
    is_open = draft.state == DraftState.OPEN
    effects = effects_of(policy, in_force=policy_at(moment), now=moment) if is_open and changes else []
    context = {
        "draft": draft,
        "changes": changes,
        "effects": effects,
        "summary": summary(effects),
        "is_open": is_open,
        "may_change": _may_change(request.user) and is_open,
        "rows": rows,
        "decide": decide,
        "now": moment,
    }
    return render_page(request, "governance/policy_draft.html", context)


def _change(draft: PolicyDraft, form: DraftForm) -> bool:
    try:
        services.change_draft(
            draft=draft,
            title=form.cleaned_data["title"],
            values=form.values(),
            expected_revision=form.cleaned_data["revision"],
            now=now(),
        )
    except Problem as problem:
        form.add_error("title" if problem.field == "title" else None, problem.detail)
        return False
    return True


def _decide(draft: PolicyDraft, form: InForceForm, user: Any) -> bool:
    moment = now()
    effects = effects_of(rows_of(draft), in_force=policy_at(moment), now=moment)
    try:
        services.put_in_force(
            draft=draft,
            from_at=form.cleaned_data["from_at"] or moment,
            reason=form.cleaned_data["reason"],
            effects=logged(effects),
            expected_revision=form.cleaned_data["revision"],
            by=user,
            now=moment,
        )
    except Problem as problem:
        form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
        return False
    return True


def _drop(request: HttpRequest, draft: PolicyDraft) -> bool:
    revision = request.POST.get("revision", "")
    try:
        services.drop_draft(draft=draft, expected_revision=int(revision) if revision.isdigit() else 0, now=now())
    except Problem as problem:
        messages.error(request, problem.detail)
        return False
    return True


class PolicyView(APIView):
    """`GET /api/v1/policy/?version=`: the policy in force, or the one of this number (0: what ships).

    200 `{"number", "from", "reason", "criteria": [{level, use, measure, comparison, threshold, window_days, source}],
    "handling": {outcome: {act, hours, then}}, "limits": {name: number}}`. 400 for what is no number; 404 for one that
    is not there.
    """

    access = Open.PUBLIC

    def get(self, request: Request) -> Response:
        asked = request.query_params.get("version", "")
        if asked and not (asked.isascii() and asked.isdigit() and len(asked) <= 6):
            raise Problem("malformed", f"version: saw {asked[:20]!r}, send a number.", "version")
        policy = numbered(int(asked)) if asked else policy_at(now())
        version = version_at(now()) if not asked else PolicyVersion.objects.filter(number=policy.number).first()
        about = {"from": version.from_at.isoformat(), "reason": version.reason} if version else {}
        return Response({"number": policy.number, "from": None, "reason": ""} | about | written(policy))
