"""`/pipelines/`: which Buildkite pipeline speaks for which repository."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.accounts.services import actor_of
from apps.core.access import requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.platforms.models import Repository
from apps.platforms.pipelines import map_pipeline, pipeline_or_404, pipelines, unmap_pipeline
from apps.platforms.policy import PIPELINE_CLAIMS


class PipelineForm(forms.Form):
    """A pipeline and the repository that it speaks for; for each claim the values of which a token must have one."""

    repository = forms.ModelChoiceField(Repository.objects.all(), to_field_name="full_name")
    organization_id = forms.UUIDField(help_text="Buildkite's UUID of the organisation.")
    pipeline_id = forms.UUIDField(help_text="Buildkite's UUID of the pipeline.")

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, initial={"build_branch": "main"})
        for name in PIPELINE_CLAIMS:
            self.fields[name] = forms.CharField(
                required=False,
                max_length=5_000,
                widget=forms.Textarea(attrs={"rows": 2}),
                help_text="One value a line; empty: any. Builds of forks get tokens of the same pipeline."
                if name == "build_branch"
                else "One value a line; empty: any.",
            )

    def required_claims(self) -> dict[str, list[str]]:
        """Of the valid form, what a token must say."""
        lines = {name: [line.strip() for line in self.cleaned_data[name].splitlines()] for name in PIPELINE_CLAIMS}
        return {name: values for name, given in lines.items() if (values := [line for line in given if line])}


@requires(Permission.PIPELINE_CHANGE)
@never_cache
@require_http_methods(["GET", "POST"])
def mapping(request: HttpRequest) -> HttpResponse:
    """`/pipelines/`: the mapped pipelines. POST `act`: `add` (the form), or `remove` (`pipeline`)."""
    act = request.POST.get("act") if request.method == "POST" else ""
    if act == "remove":
        found = pipeline_or_404(request.POST.get("pipeline", ""))
        unmap_pipeline(pipeline=found, actor=actor_of(request.user), now=now())
        messages.success(request, f"Pipeline {found.pipeline_id} no longer speaks for {found.repository}.")
        return redirect("platforms:pipelines")
    form = PipelineForm(request.POST if act == "add" else None)
    if act == "add" and form.is_valid():
        values = form.cleaned_data
        try:
            made = map_pipeline(
                repository=values["repository"],
                organization_id=values["organization_id"],
                pipeline_id=values["pipeline_id"],
                required_claims=form.required_claims(),
                actor=actor_of(request.user),
                now=now(),
            )
        except Problem as problem:
            form.add_error(problem.field, problem.detail)
        else:
            messages.success(request, f"Pipeline {made.pipeline_id} speaks for {made.repository}.")
            return redirect("platforms:pipelines")
    context = {
        "pipelines": list(pipelines()),
        "issuers": [entry["issuer"] for entry in settings.OIDC_ISSUERS if entry["kind"] == "buildkite"],
        "form": form,
        "now": now(),
    }
    return render(request, "platforms/pipelines.html", context)
