"""Tests that fail always: raised as regressions, never quarantined by the hub. Read for pages and the API."""

from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from apps.quarantine.enums import State
from apps.quarantine.models import Member, Quarantine, Streak
from apps.quarantine.selectors import visible_to
from apps.results.models import Report
from apps.results.report_selectors import visible_to as reports_visible_to


def regressions(user: Any, given: dict[str, Any]) -> QuerySet[Streak]:
    """Tests that are red in every run, newest first, as far as the user may see the first and the last report; narrowed
    by `platform` (a slug). `ended`: the quarantine that ended by it, if one did. A pass ends the row."""
    reports = Report.objects.filter(reports_visible_to(user))
    ended = Member.objects.filter(
        Q(test=OuterRef("test")) | Q(test__alias__new=OuterRef("test")),
        platform=OuterRef("platform"),
        variant=OuterRef("variant"),
        quarantine__state=State.BROKEN,
        quarantine__ended_at__gte=OuterRef("since_at"),
        quarantine__in=Quarantine.objects.filter(visible_to(user)),
    )
    newest = ended.order_by("-quarantine__ended_at").values("quarantine__public_id")[:1]
    found = Streak.objects.filter(is_raised=True, since__in=reports, last__in=reports)
    if slug := given.get("platform"):
        found = found.filter(platform__slug=slug)
    related = found.select_related("test", "platform", "since", "last")
    return related.annotate(ended=Subquery(newest)).order_by("-since_at", "-pk")
