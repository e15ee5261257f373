"""Whose check runs are whose: how they are named, when one is wanted, and when another App holds a name.

Two Apps never publish the same check name. Source: docs/operator.md, "Modes".
"""

import datetime
import logging
from collections.abc import Iterable

from django.conf import settings

from apps.platforms.policy import MATURE, STABLE
from apps.relay import modes
from apps.relay.models import SeenCheck

log = logging.getLogger(__name__)

LABEL_PREFIX = "ciflow/crcr/"
# Another App that used a name this lately is still at work.
STILL_AT_WORK = datetime.timedelta(hours=2)


def check_name(full_name: str, workflow: str, job_name: str) -> str:
    """The name of a job's check run: `crcr/<owner>/<repo>/<workflow>/<job>`."""
    return f"{settings.CHECK_PREFIX}/{full_name}/{workflow}/{job_name}"


def wants_check(level: int, device: str, labels: Iterable[str]) -> bool:
    """Whether jobs of a repository show on a pull request: always at L4, with its device's label at L3."""
    return level == MATURE or (level == STABLE and f"{LABEL_PREFIX}{device}" in labels)


def others_holding(name: str, sha: str, *, now: datetime.datetime) -> list[SeenCheck]:
    """Check runs of this name by other Apps: on this commit, or on any other lately."""
    others = SeenCheck.objects.filter(name=name).exclude(app_id=own_app_id())
    return [seen for seen in others if seen.sha == sha or now - seen.started_at < STILL_AT_WORK]


def others_at_work(*, now: datetime.datetime) -> list[tuple[str, str]]:
    """(App's name, check's name) of others that publish under our prefix now: what an operator must stop."""
    lately = SeenCheck.objects.filter(
        name__startswith=f"{settings.CHECK_PREFIX}/", started_at__gt=now - STILL_AT_WORK
    ).exclude(app_id=own_app_id())
    return sorted(set(lately.values_list("app_name", "name")))


def own_app_id() -> int:
    """The hub's App; -1, which is nobody's, where none is set up."""
    return int(settings.GITHUB_APP_ID) if settings.GITHUB_APP_ID.isdigit() else -1


def may_publish(name: str, sha: str, *, now: datetime.datetime) -> bool:
    """Whether the hub may publish a check run: its mode publishes, and no other App holds the name. An alarm where one
    does."""
    if not modes.current().publishes_checks:
        return False
    holders = others_holding(name, sha, now=now)
    if holders:
        log.error(
            "check %s is not published: the App %s (%s) publishes it too. Stop it there, or set ACCELHUB_CHECK_PREFIX.",
            name,
            holders[0].app_name,
            holders[0].app_id,
        )
    return not holders
