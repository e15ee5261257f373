"""`/status/`: how the hub itself is: what it got, how old it is, when it was out."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse

from apps.core.access import public
from apps.core.clock import now
from apps.core.rendering import render_page
from apps.gate.selectors import open_trips
from apps.relay import missed, modes
from apps.relay.selectors import latest_delivery_at
from apps.results.selectors import newest_count_at

PAGE = 50


@public
def status(request: HttpRequest) -> HttpResponse:
    """`/status/`: ages, and every outage with what was missed and recovered: `?page=`."""
    context = {
        "mode": modes.current(),
        "latest_delivery_at": latest_delivery_at(),
        "counted_at": newest_count_at(),
        "trips": list(open_trips()),
        "log": missed.delivery_log(),
        "unread": missed.unread_logs()[:PAGE],
        "page": Paginator(missed.outages(), PAGE).get_page(request.GET.get("page")),
        "now": now(),
    }
    return render_page(request, "public/status.html", context)
