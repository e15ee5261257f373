"""`/console/repositories/`: what each listed repository takes part in, and its declared limits, in one list."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse

from apps.core.access import requires
from apps.core.clock import now
from apps.core.permissions import Permission
from apps.core.rendering import render_page
from apps.platforms.selectors import open_windows
from apps.relay.selectors import repositories_with_wishes

PAGE = 50


@requires(Permission.PARTICIPATION_CHANGE)
def repositories(request: HttpRequest) -> HttpResponse:
    """`/console/repositories/`: listed repositories by name, with the doors to their participation and limits:
    `?page=`."""
    moment = now()
    page = Paginator(repositories_with_wishes(), PAGE).get_page(request.GET.get("page"))
    windows = open_windows(now=moment).filter(repository__in=[row.pk for row in page.object_list])
    until = dict(windows.values_list("repository", "ends_at"))
    context = {
        "page": page,
        "rows": [(row, getattr(row, "participation", None), until.get(row.pk)) for row in page.object_list],
        "nav": "operations",
        "now": moment,
    }
    return render_page(request, "console/repositories.html", context)
