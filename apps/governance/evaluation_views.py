"""A repository held against the policy: the page and its counterpart in the API. Waivers are given and taken there."""

import uuid
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.access import public
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Open, Permission
from apps.core.rendering import render_page
from apps.core.sheets import SheetView
from apps.governance.evaluation import Evaluation
from apps.governance.forms_levels import WaiverForm, WithdrawForm
from apps.governance.models import Waiver
from apps.governance.nights import evaluations_of, nights
from apps.governance.waiving import grant_waiver, holding, waivable, withdraw_waiver
from apps.platforms.models import Repository
from apps.platforms.policy import LEVELS, MATURE, OBSERVATION
from apps.platforms.selectors import judged_or_404, may_on_platform
from apps.policies.policy import WINDOW_MAX, Use
from apps.policies.selectors import policy_at
from apps.results.set_aside import aside_of

NIGHTS = 14


@public  # below L2, for who may not see it, it does not exist
@require_http_methods(["GET", "POST"])
def evaluation(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    """`/repositories/<owner>/<name>/evaluation/`: each criterion of the next level, and of staying, as of now. POST
    `act` for maintainers: `waive` (`criterion`, `reason`, `until_at`), `withdraw` (`waiver`, `reason`)."""
    user: Any = request.user
    repository = judged_or_404(owner, name, user)
    may_waive = user.is_authenticated and user.may(Permission.WAIVER_GRANT)
    form = WaiverForm(waivable(policy_at(now())))
    if request.method == "POST":
        if not may_waive:
            raise PermissionDenied("Only maintainers grant waivers.")
        if request.POST.get("act") == "withdraw":
            _withdraw(request, repository)
            return redirect("governance:evaluation", owner=repository.owner, name=repository.name)
        form = WaiverForm(waivable(policy_at(now())), request.POST)
        if form.is_valid() and _waive(user, repository, form):
            messages.success(request, "The waiver holds.")
            return redirect("governance:evaluation", owner=repository.owner, name=repository.name)
    moment = now()
    found = evaluations_of([repository], now=moment, is_shown=True)[repository.pk]
    context = {
        "repository": repository,
        "evaluations": [(one, LEVELS[one.level], one.use is Use.RISE) for one in found],
        "aside": aside_of([repository], days=WINDOW_MAX, now=moment),
        "nights": nights(repository, use=Use.STAY, level=repository.level, days=NIGHTS),
        "waivers": list(holding(now=moment).filter(repository=repository)),
        "may_waive": may_waive,
        "form": form,
        "promote_to": _promoted_to(user, repository),
        "now": moment,
    }
    return render_page(request, "governance/evaluation.html", context)


def _promoted_to(user: Any, repository: Repository) -> str:
    """The level that this user may open a promotion to; empty where none."""
    may = OBSERVATION <= repository.level < MATURE
    may = may and may_on_platform(user, Permission.PROMOTION_OPEN, repository.platform)
    return LEVELS[repository.level + 1].code if may else ""


def _waive(user: Any, repository: Repository, form: WaiverForm) -> bool:
    try:
        grant_waiver(repository=repository, by=user, now=now(), **form.cleaned_data)
    except Problem as problem:
        form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
        return False
    return True


def _withdraw(request: HttpRequest, repository: Repository) -> None:
    user: Any = request.user
    form = WithdrawForm(request.POST)
    waiver = _waiver_or_404(repository, request.POST.get("waiver", ""))
    if not form.is_valid():
        messages.error(request, "Nothing is withdrawn: say why.")
        return
    try:
        withdraw_waiver(waiver=waiver, reason=form.cleaned_data["reason"], by=user, now=now())
    except Problem as problem:
        messages.error(request, problem.detail)
        return
    messages.success(request, "The waiver is withdrawn.")


def _waiver_or_404(repository: Repository, public_id: str) -> Waiver:
    try:
        return Waiver.objects.select_related("repository__platform").get(
            repository=repository, public_id=uuid.UUID(public_id)
        )
    except (ValueError, Waiver.DoesNotExist):
        raise Http404 from None


class EvaluationView(SheetView):
    """`GET /api/v1/repositories/<owner>/<name>/evaluation/?format=`: the same as of now.

    200 `{"repository", "level", "evaluated_at", "policy", "evaluations": [{"level", "use", "verdict", "sentence",
    "possible_on", "notes": [], "results": [{criterion, asks, window_days, value, shown, rows, counts, trust, verdict,
    sentence, possible_on, waiver}]}]}`; as CSV a line for each result. 404 where it is not for the caller.
    """

    access = Open.PUBLIC
    columns = (
        *("repository", "level", "use", "criterion", "asks", "window_days", "value", "shown", "rows", "counts"),
        *("trust", "verdict", "sentence", "possible_on", "waiver"),
    )

    def get(self, request: Request, owner: str, name: str) -> Response:
        repository = judged_or_404(owner, name, request.user)
        moment = now()
        found = evaluations_of([repository], now=moment, is_shown=True)[repository.pk]
        return Response(
            {
                "repository": repository.full_name,
                "level": repository.level_code,
                "evaluated_at": moment.isoformat(),
                "policy": policy_at(moment).number,
                "evaluations": [written(one) for one in found],
            }
        )

    def csv_rows(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        """A line for each result."""
        return [
            {"repository": data["repository"], "level": one["level"], "use": one["use"]} | row
            for one in data["evaluations"]
            for row in one["results"]
        ]


def written(one: Evaluation) -> dict[str, Any]:
    """An evaluation as JSON."""
    return {
        "level": LEVELS[one.level].code,
        "use": one.use.value,
        "verdict": one.verdict.value,
        "sentence": one.sentence,
        "possible_on": one.possible_on.isoformat() if one.possible_on else None,
        "notes": list(one.notes),
        "results": [result.written() for result in one.results],
    }
