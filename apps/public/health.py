"""The hub's own health: what its probes say, and what waits."""

import datetime
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.audit.log_health import log_health
from apps.core import rounds as scheduled
from apps.core.access import requires
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.core.permissions import Permission
from apps.platforms.selectors import probes
from apps.public.selectors import heard_of
from apps.relay import selectors as relay_selectors

ROUNDS_SHOWN = 5


@dataclass(frozen=True)
class Waiting:
    """Work that is due and not done: how much, and since when the oldest of it."""

    title: str
    count: int
    oldest: datetime.datetime | None


@requires(Permission.HEALTH_VIEW)
def health(request: HttpRequest) -> HttpResponse:
    """`/staff/health/`: the probes (`manage.py platform probe`) with their last rounds, what waits, when each scheduled
    task last did its work, and how safe the log is."""
    moment = now()
    repositories = heard_of(list(probes()), moment, sees_private=True)
    rounds = relay_selectors.newest_rounds(repositories, ROUNDS_SHOWN)
    oldest = Wakeup.objects.order_by("created_at").values_list("created_at", flat=True).first()
    context = {
        "probes": [(repository, rounds[repository.pk]) for repository in repositories],
        "waiting": [
            Waiting("Wake-ups", Wakeup.objects.count(), oldest),
            *(Waiting(title, *row) for title, row in relay_selectors.backlog(now=moment).items()),
        ],
        "rounds": scheduled.standings(now=moment),
        "log": log_health(now=moment),
        "now": moment,
    }
    return render(request, "public/health.html", context)
