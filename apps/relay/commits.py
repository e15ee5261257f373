"""Whether upstream knows the commits that nightly and periodic runs name: asked once each, in the background."""

import datetime
import logging
from collections.abc import Iterable

from django.conf import settings
from django.db import connection

from apps.core import rounds
from apps.core.github import GitHubRefused, GitHubUnavailable, client
from apps.relay.enums import Flag
from apps.relay.models import CommitLookup, Delivery, Job
from apps.relay.policy import UNDISPATCHED_EVENTS

log = logging.getLogger(__name__)

COMMITS_AT_ONCE = 50
# What was not answered for by then, as of most of an imported history, is not asked about any more.
ASKED_FOR = datetime.timedelta(days=14)

# Jobs whose commit turned out to be unknown, those that came after the answer among them.
_FLAG = f"""
UPDATE relay_job j SET flags = array_append(j.flags, '{Flag.UNKNOWN_COMMIT}'), judged_at = %(now)s,
    revision = j.revision + 1
FROM relay_commitlookup c
WHERE c.sha = j.head_sha AND NOT c.is_known AND j.dispatch_id IS NULL AND NOT '{Flag.UNKNOWN_COMMIT}' = ANY(j.flags)
    AND j.event_type = ANY(%(events)s)
"""  # noqa: S608  a constant


def look_up_commits(*, now: datetime.datetime) -> int:
    """Ask GitHub about commits of nightly and periodic jobs that nobody has asked about yet, and flag the jobs of those
    that upstream does not know. Returns how many commits were answered for.

    A commit of a delivery is known without asking. When GitHub fails, what is left waits for the next time.
    """
    answered = ask_about(_unknown_shas(now), now=now)
    with connection.cursor() as cursor:
        cursor.execute(_FLAG, {"now": now, "events": list(UNDISPATCHED_EVENTS)})
    return answered


def ask_about(shas: Iterable[str], *, now: datetime.datetime) -> int:
    """Ask GitHub whether upstream has these commits, and keep what it says. Returns how many were answered for."""
    answered = 0
    for sha in shas:
        try:
            is_known = Delivery.objects.filter(head_sha=sha).exists() or client().knows_commit(
                settings.UPSTREAM_REPO, sha
            )
        except (GitHubUnavailable, GitHubRefused) as error:
            log.warning("upstream's commits cannot be looked up: %s", error)
            rounds.undone(str(error))
            break
        CommitLookup.objects.bulk_create(
            [CommitLookup(sha=sha, is_known=is_known, looked_up_at=now)], ignore_conflicts=True
        )
        answered += 1
    return answered


def _unknown_shas(now: datetime.datetime) -> list[str]:
    looked_up = CommitLookup.objects.values("sha")
    nightlies = Job.objects.filter(dispatch=None, event_type__in=UNDISPATCHED_EVENTS, first_seen_at__gt=now - ASKED_FOR)
    named = nightlies.exclude(head_sha="").exclude(head_sha__in=looked_up)
    return list(named.order_by("head_sha").values_list("head_sha", flat=True).distinct()[:COMMITS_AT_ONCE])
