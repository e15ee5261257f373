"""The signed-in home: everything that waits for a decision, and one's own proposals. No models, no rules."""

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.appeals.policy import is_overdue
from apps.appeals.selectors import undecided
from apps.core import alarms
from apps.core.access import requires
from apps.core.clock import now
from apps.core.permissions import Open, Permission
from apps.governance import selectors
from apps.levels.selectors import open_promotions
from apps.platforms import authority
from apps.platforms.renames import transfers_waiting
from apps.platforms.selectors import edits_to_show, open_alarm, open_demotions
from apps.quarantine.awaiting import awaiting

PAGE = 50
MINE_SHOWN = 50


@requires(Open.SIGNED_IN)
def console(request: HttpRequest) -> HttpResponse:
    """`/console/`: for who decides, the queue, oldest first (`?page=`), open appeals, and new owners of repositories;
    for who runs the hub, its alarms; for who looks after the allowlist, what waits for upstream's file; for everyone
    their own proposals, and the quarantines that wait for them."""
    user: Any = request.user
    moment = now()
    is_decider = user.may(Permission.PROPOSAL_DECIDE)
    context: dict[str, Any] = {
        "is_decider": is_decider,
        "mine": list(selectors.proposals_of(user)[:MINE_SHOWN]),
        "mine_shown": MINE_SHOWN,
        "quarantines": awaiting(user, now=moment, limit=PAGE),
        "page_size": PAGE,
        "nav": "console",
        "now": moment,
    }
    if user.may(Permission.ALLOWLIST_VIEW) and authority.is_file():
        context["alarm"] = open_alarm()
        context["edits"] = edits_to_show(now=context["now"])
        context["demotions"] = open_demotions()
        context["sees_allowlist"] = True
    if user.may(Permission.TRANSFER_DECIDE):
        context["transfers"] = list(transfers_waiting()[:PAGE])
    if user.may(Permission.APPEAL_DECIDE):
        context["appeals"] = [(one, is_overdue(one.state, one.deadline_at, moment)) for one in undecided()[:PAGE]]
    if user.may(Permission.REJECTION_VIEW):
        context["alarms"] = list(alarms.recent(now())[:PAGE])
        context["may_map"] = user.may(Permission.PIPELINE_CHANGE)
    if is_decider:
        context["page"] = Paginator(selectors.waiting_for_decision(), PAGE).get_page(request.GET.get("page"))
        context["promotions"] = list(open_promotions()[:PAGE])
        context["returned"] = list(selectors.waiting_for_vendor()[:PAGE])
    return render(request, "console/queue.html", context)
