"""`/console/relay/`: for operators: what the hub passes on, where it differs from the relay, whose names collide."""

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse

from apps.core.access import requires
from apps.core.clock import now
from apps.core.permissions import Permission
from apps.core.rendering import render_page
from apps.relay import adoption_selectors, modes, shadow
from apps.relay.adoption import DifferenceKind

PAGE = 50


@requires(Permission.RELAY_VIEW)
def relay(request: HttpRequest) -> HttpResponse:
    """`/console/relay/`: the mode, results that wait for the dashboard or were given up, and differences by kind:
    `?kind=&page=`."""
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
