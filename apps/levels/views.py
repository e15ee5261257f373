"""Pages of promotions."""

import uuid
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from apps.audit.chain import canonical
from apps.audit.selectors import events_about
from apps.core.access import public, requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Open, Permission
from apps.core.rendering import render_page
from apps.governance.nights import evaluations_of
from apps.levels import selectors
from apps.levels.bundle import changes_since
from apps.levels.forms import OpenForm, PromotionFilterForm, VerbForm
from apps.levels.freezing import asked_evidence
from apps.levels.models import Promotion
from apps.levels.promoting import live_evaluation, newest_bundle, open_promotion, recused, standing_of
from apps.levels.promotion_policy import PROMOTED_TO
from apps.levels.promotion_verbs import OFFERS, offered, perform
from apps.platforms.policy import LEVELS, consequences
from apps.platforms.selectors import judged_or_404, may_on_platform
from apps.policies.policy import MEASURES, Use
from apps.policies.selectors import policy_at

PAGE = 50


@public
@require_safe
def promotions(request: HttpRequest) -> HttpResponse:
    """`/promotions/?state=&target=&repository=&page=`: every promotion to L3 or L4, the newest first."""
    form = PromotionFilterForm(request.GET)
    page = Paginator(selectors.promotions_found(form.given()), PAGE).get_page(request.GET.get("page"))
    return render_page(request, "levels/promotion_list.html", {"form": form, "page": page, "now": now()})


@requires(Open.SIGNED_IN)
@require_http_methods(["GET", "POST"])
def promote(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    """`/repositories/<owner>/<name>/promote/`: open a promotion, for the platform's members and maintainers. It shows
    what is met, and freezes the evidence."""
    user: Any = request.user
    repository = judged_or_404(owner, name, user)
    if not may_on_platform(user, Permission.PROMOTION_OPEN, repository.platform):
        raise PermissionDenied("Only members of the platform and maintainers open a promotion.")
    target = repository.level + 1
    if target not in PROMOTED_TO:
        raise Http404
    measures = asked_evidence(policy_at(now()), target)
    form = OpenForm(measures, request.POST or None, device=repository.device)
    if request.method == "POST" and form.is_valid():
        try:
            made = open_promotion(
                repository=repository,
                reason=form.cleaned_data["reason"],
                items=form.items,
                device=form.cleaned_data.get("device", ""),
                by=user,
                now=now(),
            )
        except Problem as problem:
            form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
        else:
            messages.success(request, "Opened: its evidence is frozen, and maintainers are told.")
            return redirect("levels:promotion", public_id=made.public_id)
    found = evaluations_of([repository], now=now(), shown_by=measures, is_shown=True)[repository.pk]
    context = {
        "repository": repository,
        "level": LEVELS[target],
        "evaluation": next(one for one in found if one.use is Use.RISE),
        "open": selectors.open_promotion_of(repository.pk),
        "form": form,
        "now": now(),
    }
    return render_page(request, "levels/promotion_form.html", context)


@public
@require_http_methods(["GET", "POST"])
def promotion(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/promotions/<id>/`: what is proposed, on which evidence, who said what, and what changed since. POST `act`: a
    verb of promotion_verbs.OFFERS, with what it asks for."""
    user: Any = request.user
    found = selectors.promotion_or_404(public_id)
    content = newest_bundle(found).opened()
    refused, act = None, request.POST.get("act", "")
    if request.method == "POST":
        if not user.is_authenticated or act not in OFFERS:
            raise PermissionDenied("Sign in, and choose what to do.")
        refused = _form(act, found, content, request.POST)
        if refused.is_valid() and _performed(request, act, found, refused):
            return redirect("levels:promotion", public_id=public_id)
        found = selectors.promotion_or_404(public_id)
    moment = now()
    forms = [
        (OFFERS[verb], verb, refused if refused and verb == act else _form(verb, found, content))
        for verb in offered(found, user)
    ]
    if refused and not any(verb == act for _, verb, _ in forms):
        forms.append((OFFERS[act], act, refused))
    live = live_evaluation(found, content, now=moment) if found.is_open and _may_still_rise(found) else None
    context = {
        "promotion": found,
        "bundles": list(found.bundles.defer("content")),
        "content": content,
        "results": [_row(row) for row in content["stated"]["results"]],
        "brought": [item | {"of": _title(item["measure"])} for item in content["evidence"]],
        "standing": standing_of(found, now=moment) if found.is_open else None,
        "changes": changes_since(content["stated"]["results"], live) if live else [],
        "consequences": consequences(found.target - 1, found.target),
        "approvals": found.approvals.select_related("by", "organisation", "bundle"),
        "objections": found.objections.select_related("by"),
        "recused": recused(found) if found.is_open else [],
        "events": events_about("promotion", str(found.public_id)),
        "forms": forms,
        "now": moment,
    }
    return render_page(request, "levels/promotion_detail.html", context)


def _row(stated: dict[str, Any]) -> dict[str, Any]:
    measure = stated["criterion"].rpartition(".")[2]
    known = MEASURES.get(measure)
    return stated | {"title": _title(measure), "is_shown": known is not None and known.is_evidence}


def _title(measure: str) -> str:
    known = MEASURES.get(measure)
    return known.title if known else measure


def _may_still_rise(promotion: Promotion) -> bool:
    return promotion.repository.level == promotion.target - 1


def _form(verb: str, promotion: Promotion, content: dict[str, Any], data: Any = None) -> VerbForm:
    criteria = [row["criterion"] for row in content["stated"]["results"]]
    return VerbForm(
        OFFERS[verb].fields,
        criteria,
        data,
        notes=bool(content["notes"]),
        initial={"revision": promotion.revision},
        auto_id=f"{verb}-%s",
    )


def _performed(request: HttpRequest, verb: str, promotion: Promotion, form: VerbForm) -> bool:
    said = dict(form.cleaned_data)
    revision = said.pop("revision")
    try:
        perform(verb, promotion=promotion, revision=revision, said=said, user=request.user, now=now())
    except Problem as problem:
        form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
        return False
    messages.success(request, f"{OFFERS[verb].title}: done. It stands in the log.")
    return True


@public
@require_safe
def evidence(request: HttpRequest, public_id: uuid.UUID, number: int) -> HttpResponse:
    """`/promotions/<id>/evidence/<number>.json`: a bundle, whole: its SHA-256 over these bytes stands in the log."""
    bundle = selectors.bundle_or_404(public_id, number)
    answer = HttpResponse(canonical(bundle.opened()), content_type="application/json")
    answer["Content-Disposition"] = f'attachment; filename="evidence-{bundle.sha256[:12]}.json"'
    return answer
