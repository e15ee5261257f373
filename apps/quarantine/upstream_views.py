"""The page of upstream's own list of disabled tests."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from apps.accounts.services import actor_of
from apps.core.access import public
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.rendering import render_page
from apps.quarantine import upstream_words
from apps.quarantine.disabled_list import GUARDS
from apps.quarantine.forms import UpstreamFilterForm, WordForm
from apps.quarantine.models import UpstreamList
from apps.quarantine.selectors import may_decide

PAGE = 50


@public
@require_http_methods(["GET", "POST"])
def upstream(request: HttpRequest) -> HttpResponse:
    """`/quarantines/upstream/?q=&unknown=&page=`: what upstream's list disables, and what its platforms are here. POST
    `word`, `platform`, `reason`, for maintainers: what a word means that nobody knows."""
    known = upstream_words.known()
    unknown = upstream_words.unknown_words(known)
    askable = [one for one in unknown if one.is_askable]
    form = WordForm([one.word for one in askable], request.POST or None)
    if request.method == "POST":
        if not may_decide(request.user):
            raise PermissionDenied("Only maintainers may say what a word of upstream's list means.")
        if form.is_valid():
            try:
                named = upstream_words.name_word(**form.cleaned_data, actor=actor_of(request.user), now=now())
            except Problem as problem:
                form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
            else:
                messages.success(request, f"“{named.word}” is {named.platform or 'no platform here'}.")
                return redirect("quarantine:upstream")
    filters = UpstreamFilterForm(request.GET)
    page = Paginator(upstream_words.found(filters.given(), unknown), PAGE).get_page(request.GET.get("page"))
    context = {
        "kept": UpstreamList.objects.filter(pk=1).first(),
        "guards": GUARDS,
        "unknown": unknown,
        "form": filters,
        "word_form": form if askable and may_decide(request.user) else None,
        "page": page,
        "lines": upstream_words.read(list(page.object_list), known),
        "now": now(),
    }
    return render_page(request, "quarantine/upstream_list.html", context)
