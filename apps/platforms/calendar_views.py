"""Whose working days a platform's deadlines are counted in: the page, and its counterpart in the API."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.services import actor_of
from apps.core.access import requires
from apps.core.api import text
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Open, Permission
from apps.core.workdays import CODE_MAX, named
from apps.platforms.calendars import declare_calendar
from apps.platforms.models import Platform
from apps.platforms.selectors import may_on_platform, platform_or_404

_WHO = "Only who speaks for the platform, or a maintainer, declares its calendar."


class CalendarForm(forms.Form):
    """A code of core.workdays."""

    calendar = forms.CharField(
        required=False,
        max_length=CODE_MAX,
        help_text="A country as ISO 3166 spells it (CN, DE), or a part of it that has holidays of its own (DE-BY). "
        "Empty: Monday to Friday. Deadlines that run keep theirs.",
    )


@requires(Open.SIGNED_IN)
@require_http_methods(["GET", "POST"])
def calendar(request: HttpRequest, slug: str) -> HttpResponse:
    """`/platforms/<slug>/calendar/`: declare whose working days count, for members of the platform and maintainers."""
    platform = platform_or_404(slug)
    if not may_on_platform(request.user, Permission.CALENDAR_DECLARE, platform):
        raise PermissionDenied(_WHO)
    form = CalendarForm(request.POST or None, initial={"calendar": platform.calendar})
    if request.method == "POST":
        form = CalendarForm(request.POST)
        if form.is_valid() and _declare(request, platform, form):
            messages.success(request, f"Deadlines are counted in {named(platform.calendar)}.")
            return redirect("public:platform", slug=slug)
    return render(request, "platforms/platform_calendar.html", {"platform": platform, "form": form})


def _declare(request: HttpRequest, platform: Platform, form: CalendarForm) -> bool:
    """Whether it is declared; if not, the form says why."""
    try:
        declare_calendar(platform=platform, actor=actor_of(request.user), now=now(), **form.cleaned_data)
    except Problem as problem:
        form.add_error(problem.field, problem.detail)
        return False
    return True


class CalendarIn(serializers.Serializer[Any]):
    """What to declare; the empty text is Monday to Friday."""

    calendar = text(CODE_MAX, allow_blank=True)


class CalendarView(APIView):
    """`POST /api/v1/platforms/{slug}/calendar/`: declare whose working days its deadlines are counted in.

    Body `{calendar}`. 200 `{"platform", "calendar", "words"}`, also where it was declared before. 400 `malformed`; 401
    `not_signed_in`; 403 `not_permitted`; 404.
    """

    access = Open.SIGNED_IN

    def post(self, request: Request, slug: str) -> Response:
        platform = platform_or_404(slug)
        if not may_on_platform(request.user, Permission.CALENDAR_DECLARE, platform):
            raise Problem("not_permitted", _WHO)
        form = CalendarIn(data=request.data)
        form.is_valid(raise_exception=True)
        declare_calendar(platform=platform, actor=actor_of(request.user), now=now(), **form.validated_data)
        return Response(
            {"platform": platform.slug, "calendar": platform.calendar, "words": named(platform.calendar)},
        )
