"""`/console/relay/`: for operators: what the hub passes on, where it differs from the relay, whose names collide."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from apps.accounts.services import actor_of
from apps.core.access import requires
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Permission
from apps.core.rendering import render_page
from apps.relay import adoption_selectors, modes, shadow
from apps.relay.adoption import DifferenceKind
from apps.relay.forwarding import resend_forward

PAGE = 50


@requires(Permission.RELAY_VIEW)
@require_http_methods(["GET", "POST"])
def relay(request: HttpRequest) -> HttpResponse:
    """`/console/relay/`: the mode, results that wait for the dashboard or were given up, and differences by kind:
    `?kind=&page=`.

    POST `forward` sends a result that was given up again.
    """
    if request.method == "POST":
        return _resend(request)
    moment, mode = now(), modes.current()
    wanted = request.GET.get("kind", "")
    kind = wanted if wanted in DifferenceKind.values else ""
    counts = adoption_selectors.difference_counts()
    context: dict[str, Any] = {
        "mode": mode,
        "collisions": adoption_selectors.others_at_work(now=moment) if mode.publishes_checks else [],
        "forward_counts": adoption_selectors.forward_counts(),
        "forwards": list(adoption_selectors.forwards_to_look_at()[:PAGE]),
        "kinds": [(word, label, counts.get(word, 0)) for word, label in DifferenceKind.choices],
        "kind": kind,
        "not_observable": shadow.NOT_OBSERVABLE,
        "page": Paginator(adoption_selectors.differences(kind), PAGE).get_page(request.GET.get("page")),
        "now": moment,
    }
    return render_page(request, "console/relay.html", context)


def _resend(request: HttpRequest) -> HttpResponse:
    user: Any = request.user
    if not user.may(Permission.DISPATCH_RESEND):
        raise PermissionDenied(f"This needs the permission {Permission.DISPATCH_RESEND}.")
    forward = adoption_selectors.forward_or_404(request.POST.get("forward", ""))
    try:
        resend_forward(forward=forward, actor=actor_of(user), now=now())
    except Problem as problem:
        messages.error(request, problem.detail)
    else:
        messages.success(request, f"The result of {forward} is sent to the dashboard again.")
    return redirect("console:relay")
