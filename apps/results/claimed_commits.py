"""Commits that reports name themselves: a claim, until upstream was asked (relay's commits)."""

import datetime

from django.db import connection

from apps.relay.commits import COMMITS_AT_ONCE, ask_about
from apps.relay.models import CommitLookup
from apps.results.enums import ReportFlag, ReportState
from apps.results.models import Report

# ruff: noqa: S608  statements are put together from constants of this file

_ANSWERED = f"""
UPDATE results_report r SET changed_at = %(now)s, flags = CASE
    WHEN c.is_known THEN array_remove(r.flags, '{ReportFlag.CLAIMED_COMMIT}')
    ELSE array_replace(r.flags, '{ReportFlag.CLAIMED_COMMIT}', '{ReportFlag.UNKNOWN_COMMIT}') END
FROM relay_commitlookup c
WHERE c.sha = r.head_sha AND '{ReportFlag.CLAIMED_COMMIT}' = ANY(r.flags) AND r.state <> '{ReportState.REMOVED}'
"""


def look_up_commits(*, now: datetime.datetime) -> int:
    """Ask upstream about commits that reports claim, and say on each what it answered. Returns how many were asked."""
    claimed = Report.objects.filter(flags__contains=[ReportFlag.CLAIMED_COMMIT.value])
    unasked = claimed.exclude(head_sha__in=CommitLookup.objects.values("sha")).order_by("head_sha")
    asked = ask_about(list(unasked.values_list("head_sha", flat=True).distinct()[:COMMITS_AT_ONCE]), now=now)
    with connection.cursor() as cursor:
        cursor.execute(_ANSWERED, {"now": now})
    return asked
