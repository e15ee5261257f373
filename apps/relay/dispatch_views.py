"""The outbox as operators see it."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from apps.accounts.services import actor_of
from apps.core.access import requires
from apps.core.backoff import ATTEMPTS_MAX
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.core.rendering import render_page
from apps.relay import selectors
from apps.relay.forms import DispatchForm
from apps.relay.outbox import resend_dispatch

PAGE = 50


@requires(Permission.DISPATCH_VIEW)
@require_http_methods(["GET", "POST"])
def dispatches(request: HttpRequest) -> HttpResponse:
    """`/dispatches/`: dispatches that wait, are tried again or were given up: `?state=&delivery=&repository=&page=`.
    Of a named delivery all of them, and to whom it was not sent.

    POST `dispatch` sends one that was given up again.
    """
    if request.method == "POST":
        return _resend(request)
    form = DispatchForm(request.GET)
    filters = form.filters()
    page = Paginator(selectors.dispatches_found(filters), PAGE).get_page(request.GET.get("page"))
    context = {
        "form": form,
        "page": page,
        "omissions": list(selectors.omissions_found(filters)) if filters.delivery else [],
        "delivery": filters.delivery,
        "attempts_max": ATTEMPTS_MAX,
        "now": now(),
    }
    return render_page(request, "relay/dispatch_list.html", context)


def _resend(request: HttpRequest) -> HttpResponse:
    user = request.user
    if not user.may(Permission.DISPATCH_RESEND):  # type: ignore[union-attr]
        raise PermissionDenied(f"This needs the permission {Permission.DISPATCH_RESEND}.")
    dispatch = selectors.dispatch_or_404(request.POST.get("dispatch", ""))
    try:
        resend_dispatch(dispatch=dispatch, actor=actor_of(user), now=now())
    except Problem as problem:
        messages.error(request, problem.detail)
    else:
        messages.success(request, f"{dispatch.repository} is sent {dispatch.delivery} again.")
    return redirect(request.get_full_path())
