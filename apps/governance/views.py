"""The vendor's entrance: propose, look, decide."""

import uuid
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from apps.audit.enums import Action
from apps.audit.models import Event
from apps.core.access import public, requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Open, Permission
from apps.governance import policy, selectors, services
from apps.governance.enums import State, Verb
from apps.governance.forms import AcceptForm, ChangesForm, DraftForms, ReturnForm, WithdrawForm
from apps.governance.models import Proposal
from apps.platforms.policy import LEVELS, UNLISTED, consequences
from apps.platforms.selectors import edits_to_show

LEVEL = LEVELS[policy.PROPOSED_LEVEL]
# Verb → its form, and the field that the service calls its words.
DECISIONS: dict[Verb, tuple[type[forms.Form], str]] = {
    Verb.ACCEPT: (AcceptForm, "reason"),
    Verb.RETURN: (ReturnForm, "words"),
    Verb.WITHDRAW: (WithdrawForm, "words"),
}


@requires(Open.SIGNED_IN)
@require_http_methods(["GET", "POST"])
def register(request: HttpRequest) -> HttpResponse:
    """`/register/`: what L1 asks for, and the form that proposes a repository for it."""
    user: Any = request.user
    drafts = DraftForms(request.POST or None, initial={"contact": user.email}, items=[])
    if request.method == "POST" and drafts.is_valid():
        assert drafts.draft is not None
        try:
            proposal = services.submit_proposal(draft=drafts.draft, by=user, now=now())
        except Problem as problem:
            drafts.refuse(problem.field, problem.detail)
        else:
            messages.success(request, f"{proposal.full_name} is proposed for {LEVEL.code}: the maintainers are next.")
            return redirect("governance:proposal", public_id=proposal.public_id)
    context = {"drafts": drafts, "criteria": policy.criteria_of(LEVEL.number), "level": LEVEL, "nav": "console"}
    return render(request, "governance/proposal_form.html", context)


@requires(Open.SIGNED_IN)
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/proposals/<id>/edit/`: complete a returned proposal and submit it again."""
    user: Any = request.user
    proposal = selectors.own_proposal_or_404(user, public_id)
    if proposal.state != State.RETURNED:
        messages.warning(request, f"The proposal is {proposal.get_state_display()}: only a returned one can be edited.")
        return redirect("governance:proposal", public_id=public_id)
    drafts = DraftForms.of(proposal, request.POST or None)
    changes = ChangesForm(request.POST or None, initial={"revision": proposal.revision})
    # Both are asked, so that all errors are shown at once.
    if request.method == "POST" and all([drafts.is_valid(), changes.is_valid()]):
        assert drafts.draft is not None
        said = changes.cleaned_data
        try:
            services.resubmit_proposal(
                proposal=proposal,
                draft=drafts.draft,
                words=said["words"],
                expected_revision=said["revision"],
                by=user,
                now=now(),
            )
        except Problem as problem:
            drafts.refuse(problem.field, problem.detail)
        else:
            messages.success(request, "Submitted again: the maintainers are next.")
            return redirect("governance:proposal", public_id=public_id)
    context = {
        "drafts": drafts,
        "changes": changes,
        "proposal": proposal,
        "missing": selectors.transitions_of(proposal).first(),
        "criteria": policy.criteria_of(LEVEL.number),
        "level": LEVEL,
        "nav": "console",
    }
    return render(request, "governance/proposal_form.html", context)


@public  # for those who may not see it, visitors among them, it does not exist
@require_http_methods(["GET"])
def proposal(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/proposals/<id>/`: what is proposed, where it stands, what happened; the forms of who is next."""
    return _page(request, selectors.proposal_or_404(request.user, public_id))


@requires(Permission.PROPOSAL_DECIDE)
@require_http_methods(["GET", "POST"])
def accept(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`POST /proposals/<id>/accept/`: list the repository at L1, with a reason."""
    return _decide(request, public_id, Verb.ACCEPT, services.accept_proposal)


@requires(Permission.PROPOSAL_DECIDE)
@require_http_methods(["GET", "POST"])
def give_back(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`POST /proposals/<id>/return/`: give it back to the vendor, with what is missing."""
    return _decide(request, public_id, Verb.RETURN, services.return_proposal)


@requires(Open.SIGNED_IN)
@require_http_methods(["GET", "POST"])
def withdraw(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`POST /proposals/<id>/withdraw/`: the proposer takes it back."""
    return _decide(request, public_id, Verb.WITHDRAW, services.withdraw_proposal)


def _decide(request: HttpRequest, public_id: uuid.UUID, verb: Verb, service: Callable[..., Any]) -> HttpResponse:
    """One move by a form of the proposal's page. What is refused is said on that page, and what was written stays."""
    found = selectors.proposal_or_404(request.user, public_id)
    if request.method == "GET":  # who had to sign in on the way comes back by GET
        return redirect("governance:proposal", public_id=public_id)
    form_class, words_field = DECISIONS[verb]
    form = form_class(request.POST, prefix=verb.value)
    status = 200
    if form.is_valid():
        words = {words_field: form.cleaned_data[words_field]}
        revision = form.cleaned_data["revision"]
        try:
            done = service(proposal=found, expected_revision=revision, by=request.user, now=now(), **words)
        except Problem as problem:
            form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
            status = problem.row.status if problem.field is None else 200
        else:
            messages.success(request, _said(done, found) if done else f"The proposal is {verb.label}.")
            return redirect("governance:proposal", public_id=public_id)
    return _page(request, selectors.proposal_or_404(request.user, public_id), {verb: form}, status)


def _said(event: Event, proposal: Proposal) -> str:
    if event.action == Action.LEVEL_DECIDED:
        return f"Decision #{event.seq}: {proposal.full_name} is listed at {LEVEL.code} when upstream's file says so."
    return f"Decision #{event.seq}: {proposal.full_name} is listed at {LEVEL.code}."


def _page(
    request: HttpRequest, found: Proposal, bound: dict[Verb, forms.Form] | None = None, status: int = 200
) -> HttpResponse:
    user: Any = request.user
    bound = bound or {}
    moment = now()
    is_own = found.proposer_id == user.pk
    may_decide = user.may(Permission.PROPOSAL_DECIDE)
    recusal = policy.recusal(Verb.ACCEPT, is_proposer=is_own, is_colleague=selectors.is_colleague(found, user))

    def form_of(verb: Verb) -> forms.Form | None:
        is_offered = (State(found.state), verb) in policy.MOVES and (
            is_own if policy.is_for_proposer(verb) else may_decide and not recusal
        )
        if not is_offered:
            return None
        fresh = DECISIONS[verb][0](prefix=verb.value, initial={"revision": found.revision})
        if verb not in bound:
            return fresh
        # What was written stays; it is about the submission that is shown now.
        form = bound[verb]
        form.data = form.data.dict() | {fresh.add_prefix("revision"): found.revision}  # type: ignore[attr-defined]
        return form

    offered = {verb: form_of(verb) for verb in DECISIONS}
    decision = offered[Verb.ACCEPT]
    known = selectors.known_repository(found.full_name) if decision else None
    context = {
        "proposal": found,
        "level": LEVEL,
        "evidence": list(selectors.evidence_of(found)),
        "transitions": list(selectors.transitions_of(found)),
        "contact": found.contact if selectors.sees_private(user, found) else None,
        "sees_salt": selectors.sees_private(user, found),
        "accept_form": decision,
        "return_form": offered[Verb.RETURN],
        "withdraw_form": offered[Verb.WITHDRAW],
        "may_edit": is_own and found.state == State.RETURNED,
        "recusal": recusal if may_decide and found.state == State.WAITING else "",
        "is_own": is_own,
        "edits": edits_to_show(now=moment, repository_ids=[found.repository_id]) if found.repository_id else [],
        "known": known,
        "consequences": consequences(known.level if known else UNLISTED, LEVEL.number) if decision else [],
        "criteria": policy.criteria_of(LEVEL.number),
        # What was refused, where the form is gone that would say so.
        "refused": [error for verb, form in bound.items() if not offered[verb] for error in form.non_field_errors()],
        "nav": "console",
        "now": moment,
        "age": int((moment - found.changed_at).total_seconds()),
    }
    return render(request, "governance/proposal_detail.html", context, status=status)
