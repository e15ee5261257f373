"""New owners of repositories: each waits for a decision on its page."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.accounts.services import actor_of
from apps.core.access import requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.platforms.renames import transfer_or_404
from apps.platforms.services import REASON_MAX
from apps.relay.holds import decide_transfer
from apps.relay.selectors import held_jobs

JOBS_SHOWN = 50
ACTS = {"accept": True, "refuse": False}


class ReasonForm(forms.Form):
    """Why an owner is accepted or refused."""

    reason = forms.CharField(
        max_length=REASON_MAX,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Becomes part of the public log, for good.",
    )


@requires(Permission.TRANSFER_DECIDE)
@never_cache
@require_http_methods(["GET", "POST"])
def transfer(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/transfers/<id>/`: a repository that speaks under a new owner, and what is held. POST `act`: `accept` or
    `refuse`, with a `reason`."""
    found = transfer_or_404(public_id)
    form = ReasonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        if (act := request.POST.get("act", "")) not in ACTS:
            raise Http404
        try:
            event = decide_transfer(
                transfer=found, is_accepted=ACTS[act], actor=actor_of(request.user), now=now(), **form.cleaned_data
            )
        except Problem as problem:
            form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
            found = transfer_or_404(public_id)
        else:
            word = "accepted" if ACTS[act] else "refused"
            messages.success(request, f"Decision #{event.seq}: the new owner is {word}.")
            return redirect("console:transfer", public_id=public_id)
    jobs = held_jobs(found)
    context: dict[str, Any] = {
        "transfer": found,
        "jobs": list(jobs[:JOBS_SHOWN]),
        "count": jobs.count(),
        "form": form,
        "now": now(),
    }
    return render(request, "console/transfer.html", context)
