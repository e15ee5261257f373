"""Had a repository been blocking: the page and its counterpart in the API."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.access import public
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.permissions import Open
from apps.core.sheets import SheetView
from apps.gate.replay import DAYS
from apps.gate.replay_kept import FRESH, replay_lately
from apps.gate.replay_policy import HOUR, WRONG, Outcome
from apps.platforms.selectors import judged_or_404
from apps.policies.policy import WINDOW_MAX

CHOICES = (7, 14, 30, WINDOW_MAX)
# What the page lists; the API tells all.
SHOWN = 200


@public  # below L2, for who may not see it, it does not exist
@require_safe
def replayed(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    """`/repositories/<owner>/<name>/replay/?days=14` (one of CHOICES): what the gate would have said, had it been
    blocking; what it would have blocked first."""
    repository = judged_or_404(owner, name, request.user)
    given = request.GET.get("days", "")
    days = int(given) if given in map(str, CHOICES) else DAYS
    found = replay_lately(repository, days=days, now=now())
    order = list(Outcome)
    heads = sorted(found.heads, key=lambda one: (order.index(one.outcome), not one.wrong, -one.told_at.timestamp()))
    context = {
        "repository": repository,
        "replay": found,
        "fresh_hours": FRESH // HOUR,
        "days": days,
        "choices": CHOICES,
        "heads": heads[:SHOWN],
        "more": len(heads) - SHOWN,
        "wrongly_by": [(WRONG[why], found.wrongly_by[why.value]) for why in WRONG],
        "now": found.made_at,
    }
    return render(request, "gate/replay.html", context)


class ReplayView(SheetView):
    """`GET /api/v1/gate/replay/?repository=&days=&format=`: the same for programs.

    200 `{"repository", "since", "until", "made_at", "pull_requests", "blocked", "blocked_wrongly",
    "blocked_wrongly_by", "unknown", "unanswered", "passed", "hours_waited", "hours_waited_median", "heads": [{pr, sha,
    told_at, at, outcome, wrong, hours, policy, sentences, rows [{kind, label, url}]}]}`, each `url` a path on this hub;
    as CSV a line for each head. 400 `malformed`; 404 where it is not for the caller.
    """

    access = Open.PUBLIC
    columns = ("pr", "sha", "told_at", "at", "outcome", "wrong", "hours", "policy", "sentences")

    def get(self, request: Request) -> Response:
        owner, slash, name = request.query_params.get("repository", "").partition("/")
        if not slash:
            raise Problem("malformed", "repository: send owner/name.", "repository")
        repository = judged_or_404(owner, name, request.user)
        days = _days(request.query_params.get("days", ""))
        return Response(replay_lately(repository, days=days, now=now()).written())

    def csv_rows(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        """A line for each head."""
        rows: list[dict[str, Any]] = data["heads"]
        return rows


def _days(text: str) -> int:
    if not text:
        return DAYS
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(WINDOW_MAX))):
        raise Problem("malformed", f"days: saw {text[:20]!r}, send 1 to {WINDOW_MAX}.", "days")
    return int(text)
