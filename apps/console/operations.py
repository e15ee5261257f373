"""`/console/operations/`: every room of those who run the hub or decide on it, with what needs somebody there."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.checks.selectors import given_up_checks
from apps.core import alarms, rounds
from apps.core.access import requires
from apps.core.clock import now
from apps.core.permissions import Open, Permission
from apps.platforms.renames import transfers_waiting
from apps.platforms.selectors import open_windows, waiting_upstream
from apps.relay import adoption_selectors
from apps.relay import selectors as relay_selectors
from apps.relay.enums import DispatchState

GIVEN_UP = relay_selectors.DispatchFilters(state=DispatchState.GIVEN_UP)


@dataclass(frozen=True)
class Room:
    """One page, whom it lets in, and what it is for. `count` is how much needs somebody there now and `counted` says
    what of, `(s)` where it needs one; a room without is only visited. `extra` leads to what is counted: a query, or a
    part of the page."""

    title: str
    url_name: str
    permission: Permission
    purpose: str
    counted: str = ""
    count: Callable[[datetime.datetime], int] | None = None
    extra: str = ""
    tone: str = "warn"

    @property
    def path(self) -> str:
        return reverse(self.url_name)


@dataclass(frozen=True)
class Door:
    """A room with what is counted there now; None where nothing is."""

    room: Room
    count: int | None

    @property
    def words(self) -> str:
        return self.room.counted.replace("(s)", "" if self.count == 1 else "s")


# In the order of a round through the hub: what burns, what is stuck on its way, who is kept out, what is set up.
ROOMS: tuple[Room, ...] = (
    Room(
        *("Alarms", "console:console", Permission.REJECTION_VIEW, "What is wrong although the hub goes on."),
        *("in the last 7 days", lambda moment: alarms.recent(moment).count(), "#alarms"),
    ),
    Room(
        *("Health", "public:health", Permission.HEALTH_VIEW, "The hub's probes, and what is due and not done."),
        *("silent probe(s)", lambda moment: len(relay_selectors.silent_probes(now=moment))),
    ),
    Room(
        *("Scheduled tasks", "public:health", Permission.HEALTH_VIEW, "When each last did its work."),
        *("overdue", lambda moment: len(rounds.overdue(now=moment)), "#tasks"),
    ),
    Room(
        *("Dispatches", "relay_pages:dispatches", Permission.DISPATCH_VIEW, "What is on its way to downstreams."),
        *("given up", lambda moment: relay_selectors.dispatches_found(GIVEN_UP).count(), "?state=given_up"),
    ),
    Room(
        *("Check runs", "checks:checks", Permission.CHECK_RESEND, "What upstream's pull requests do not show yet."),
        *("given up", lambda moment: given_up_checks().count()),
    ),
    Room(
        *("Relay", "console:relay", Permission.RELAY_VIEW, "Beside today's relay: what is passed on, what differs."),
        *("result(s) given up", lambda moment: adoption_selectors.given_up_forwards().count(), "#forwards"),
    ),
    Room(
        *("Rejected callbacks", "public:rejections", Permission.REJECTION_VIEW, "Who was refused, and why."),
        *("caller(s) in the last 24 h", lambda moment: relay_selectors.rejected_lately(now=moment).count()),
    ),
    Room(
        *("New owners", "console:console", Permission.TRANSFER_DECIDE, "Repositories that speak under another owner."),
        *("waiting for a decision", lambda moment: transfers_waiting().count(), "#transfers"),
    ),
    Room(
        *("Allowlist", "platforms:allowlist", Permission.ALLOWLIST_VIEW, "The list in force, and upstream's file."),
        *("waiting for upstream's file", lambda moment: waiting_upstream(now=moment)),
    ),
    Room(
        *("Participation and limits", "console:repositories", Permission.PARTICIPATION_CHANGE),
        "What each repository is sent, and how long its jobs may be silent.",
        *("in maintenance now", lambda moment: open_windows(now=moment).count()),
        tone="info",
    ),
    Room(
        *("Buildkite pipelines", "platforms:pipelines", Permission.PIPELINE_CHANGE),
        "Which pipeline speaks for which repository.",
    ),
    Room("People", "console:people", Permission.USER_CHANGE, "Roles, organisations, accounts switched off."),
    Room("Tables", "admin:index", Permission.ADMIN_VIEW, "What the database holds, read-only."),
    Room("Components", "public:components", Permission.COMPONENT_VIEW, "Every part of a page in every state."),
)


def rooms_of(user: Any) -> list[Room]:
    """The rooms that a signed-in user may enter."""
    return [room for room in ROOMS if user.may(room.permission)]


@requires(Open.SIGNED_IN)
@never_cache
@require_safe
def operations(request: HttpRequest) -> HttpResponse:
    """`/console/operations/`: the rooms that the user may enter, each with how much needs somebody there. 403 for who
    may enter none."""
    rooms, moment = rooms_of(request.user), now()
    if not rooms:
        raise PermissionDenied("These rooms are for those who run the hub or decide on it: see /policy/.")
    doors = [Door(room, room.count(moment) if room.count else None) for room in rooms]
    return render(request, "console/operations.html", {"doors": doors, "nav": "operations", "now": moment})
