"""Lists that are searched: the directory of platforms, where the header's search leads, and the refused callbacks."""

import re

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from apps.core.access import is_allowed, public, requires
from apps.core.clock import now
from apps.core.permissions import Open, Permission
from apps.core.rendering import render_page
from apps.platforms.forms import DirectoryForm
from apps.platforms.selectors import open_demotions, platforms_found
from apps.relay import selectors as relay_selectors
from apps.relay.forms import RejectionForm

PAGE = 50

PULL_REQUEST = re.compile(r"#?([0-9]{1,10})")
COMMIT = re.compile(r"[0-9a-f]{7,40}")


@public
def platforms(request: HttpRequest) -> HttpResponse:
    """`/platforms/`: listed platforms: `?q=&level=&kind=&sort=&page=`. The header's search asks here too: a number of a
    pull request, or a commit, that no platform is called leads straight to its page."""
    form = DirectoryForm(request.GET)
    filters = form.filters()
    page = Paginator(platforms_found(filters), PAGE).get_page(request.GET.get("page"))
    places = elsewhere(filters.words)
    if len(places) == 1 and not page.paginator.count and not request.htmx:  # type: ignore[attr-defined]
        return redirect(places[0][1])
    context = {
        "form": form,
        "page": page,
        "sort": filters.sort,
        "demoted": {demotion.repository_id for demotion in open_demotions()},
        "places": places,
        "search_query": request.GET.get("q", ""),
    }
    return render_page(request, "public/platform_list.html", context)


def elsewhere(words: str) -> list[tuple[str, str]]:
    """What else a search can mean, with its address, where there is something to see: `#123` or `123` a pull request,
    7 to 40 hex digits a commit."""
    words = words.strip().lower()
    found = []
    if pull_request := PULL_REQUEST.fullmatch(words):
        number = int(pull_request[1])
        if relay_selectors.deliveries_of_pull_request(number).exists():
            found.append((f"Pull request #{number}", reverse("public:pull_request", args=[number])))
    if COMMIT.fullmatch(words) and (
        relay_selectors.deliveries_of_commit(words).exists() or relay_selectors.undispatched_jobs(sha=words).exists()
    ):
        found.append((f"Commit {words[:12]}", reverse("public:commit", args=[words])))
    return found


@requires(Open.SIGNED_IN)
def rejections(request: HttpRequest) -> HttpResponse:
    """`/rejections/`: refused callbacks, counted: all for operators, their platforms' for vendor members:
    `?code=&repository=&sort=&page=`."""
    form = RejectionForm(request.GET)
    filters = form.filters()
    page = Paginator(relay_selectors.rejections_found(request.user, filters), PAGE).get_page(request.GET.get("page"))
    context = {"form": form, "page": page, "sort": filters.sort, "now": now()}
    if is_allowed(request.user, Permission.CHECK_RESEND):
        context["checks_url"] = reverse("checks:checks")
    return render_page(request, "public/rejection_list.html", context)
