"""Users for those who may change them: roles, organisations, and what each speaks for."""

import uuid

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from apps.accounts import selectors
from apps.accounts.forms import GrantForm, OrganisationForm, RemoveForm, SeatForm, SwitchForm
from apps.accounts.models import User
from apps.accounts.services import (
    actor_of,
    create_organisation,
    grant_role,
    remove_role,
    set_organisation,
    switch_account,
)
from apps.core.access import requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.platforms.selectors import platforms_by_member

PAGE = 50
QUERY_MAX = 100


@requires(Permission.USER_CHANGE)
@never_cache
@require_GET
def people(request: HttpRequest) -> HttpResponse:
    """`/people/`: everyone with an account, by name; `?q=` looks into names and organisations, `?page=` goes on."""
    query = request.GET.get("q", "").replace("\0", "").strip()[:QUERY_MAX]
    page = Paginator(selectors.people(query), PAGE).get_page(request.GET.get("page"))
    platforms = platforms_by_member(person.pk for person in page.object_list)
    context = {
        "page": page,
        "rows": [
            (person, selectors.roles_granted(person), platforms.get(person.pk, [])) for person in page.object_list
        ],
        "query": query,
        "now": now(),
    }
    return render(request, "console/people.html", context)


@requires(Permission.USER_CHANGE)
@never_cache
@require_http_methods(["GET", "POST"])
def person(request: HttpRequest, public_id: uuid.UUID) -> HttpResponse:
    """`/people/<id>/`: one user. POST `act`, each with a `reason`: `grant` (`role`), `remove` (`role`), `seat`
    (`organisation`, empty for none), `off`, `on`."""
    found = selectors.person_or_404(public_id)
    roles = selectors.roles_granted(found)
    act = request.POST.get("act") if request.method == "POST" else ""
    all_forms: dict[str, forms.Form] = {
        "grant": GrantForm(request.POST if act == "grant" else None, auto_id="grant-%s"),
        "remove": RemoveForm(request.POST if act == "remove" else None, roles=[role for role, _ in roles]),
        "seat": SeatForm(request.POST if act == "seat" else None, user=found),
        **{turn: SwitchForm(request.POST if act == turn else None, auto_id="switch-%s") for turn in ("off", "on")},
    }
    if request.method == "POST":
        form = all_forms.get(act or "")
        if form is None:
            raise Http404
        if form.is_valid():
            try:
                said = _apply(request, act or "", found, form)
            except Problem as problem:
                form.add_error(problem.field if problem.field in form.fields else None, problem.detail)
            else:
                messages.success(request, said)
                return redirect("console:person", public_id=public_id)
    context = {
        "person": found,
        "roles": roles,
        "platforms": platforms_by_member([found.pk]).get(found.pk, []),
        "forms": all_forms,
        "now": now(),
    }
    return render(request, "console/person.html", context)


def _apply(request: HttpRequest, act: str, user: User, form: forms.Form) -> str:
    """Do what a valid form says. Returns what to say about it."""
    actor, moment, values = actor_of(request.user), now(), form.cleaned_data
    if act == "seat":
        set_organisation(user=user, actor=actor, now=moment, **values)
        return f"{user} belongs to {values['organisation'] or 'no organisation'}."
    if act in ("off", "on"):
        is_new = switch_account(user=user, is_active=act == "on", actor=actor, now=moment, **values)
        return f"{user} is switched {act}." if is_new else f"{user} was switched {act} already."
    word = values["role"].label.lower()
    if act == "grant":
        is_new = grant_role(user=user, actor=actor, now=moment, **values)
        return f"{user} is now {word}." if is_new else f"{user} already was {word}."
    remove_role(user=user, actor=actor, now=moment, **values)
    return f"{user} is no longer {word}."


@requires(Permission.USER_CHANGE)
@never_cache
@require_http_methods(["GET", "POST"])
def organisations(request: HttpRequest) -> HttpResponse:
    """`/people/organisations/`: those that people belong to; POST `name`, `slug` makes one."""
    form = OrganisationForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            create_organisation(actor=actor_of(request.user), now=now(), **form.cleaned_data)
        except Problem as problem:
            form.add_error(problem.field, problem.detail)
        else:
            return redirect("console:organisations")
    context = {"organisations": list(selectors.organisations()), "form": form, "now": now()}
    return render(request, "console/organisations.html", context)
