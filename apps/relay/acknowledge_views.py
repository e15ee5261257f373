"""Acknowledging a red job: a page for oncalls, and its form on the job's own."""

import uuid
from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from apps.core.access import requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Open
from apps.relay.acknowledging import REASON_MAX, acknowledge, may_acknowledge
from apps.relay.models import Acknowledgement, Job
from apps.relay.policy import EXPECTED_WITHIN, RED
from apps.relay.selectors import job_or_404


class AcknowledgeForm(forms.Form):
    """Why a job is red, and by when (UTC) it is expected to be mended."""

    reason = forms.CharField(
        max_length=REASON_MAX, widget=forms.Textarea(attrs={"rows": 3}), help_text="What is wrong, as far as known."
    )
    expected_at = forms.DateTimeField(
        label="Expected by (UTC)",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
        help_text=f"When it is mended; at most {EXPECTED_WITHIN.days} days ahead.",
    )

    def clean_expected_at(self) -> Any:
        value = self.cleaned_data["expected_at"]
        return timezone.make_aware(value) if timezone.is_naive(value) else value


def acknowledge_form(job: Job, user: Any, known: Iterable[Acknowledgement]) -> AcknowledgeForm | None:
    """The empty form for who may still acknowledge the job; `known` is what was said of it."""
    if not user.is_authenticated or job.bucket not in RED or any(said.by_id == user.pk for said in known):
        return None
    return AcknowledgeForm() if may_acknowledge(user, job.repository) else None


@requires(Open.SIGNED_IN)
@require_http_methods(["GET", "POST"])
def acknowledge_job(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/jobs/<id>/acknowledge/`: for the platform's members and the repository's oncalls."""
    user: Any = request.user
    job = job_or_404(public_id)
    if not may_acknowledge(user, job.repository):
        raise PermissionDenied("Only who speaks for the platform, and the repository's oncalls, acknowledge.")
    form = AcknowledgeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            acknowledge(job=job, by=user, now=now(), **form.cleaned_data)
        except Problem as problem:
            form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
        else:
            messages.success(request, "Acknowledged: it stands on the job's page and its pull request's.")
            return redirect("public:job", public_id=public_id)
    context = {"job": job, "form": form, "rows": list(job.acknowledgements.all()), "now": now()}
    return render(request, "relay/job_acknowledge.html", context)
