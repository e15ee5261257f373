"""Background tasks of the gate: each fetches by key, calls a service, and may run twice without harm."""

import datetime

from celery import shared_task

from apps.core.clock import now
from apps.gate import breaking, services
from apps.platforms.models import Repository
from apps.platforms.policy import MATURE
from apps.relay.models import Job
from apps.results.models import Report
from apps.results.report_selectors import PUBLIC

# What has changed is heard of within seconds; so far back it is looked for.
CHANGED_WITHIN = datetime.timedelta(minutes=10)


def heed_changed_jobs(keys: list[str]) -> None:
    """Wake-up handler of `job_changed`, after results' own: of repositories that block."""
    changed = {int(key.partition(":")[0]) for key in keys}
    blocking = Repository.objects.filter(pk__in=changed, level__gte=MATURE)
    if repository_ids := sorted(blocking.values_list("pk", flat=True)):
        look_at_jobs.delay(repository_ids)


def heed_ready_reports(keys: list[str]) -> None:
    """Wake-up handler of `report_ready`, after those of results and quarantine."""
    found = Report.objects.filter(PUBLIC, pk__in=[int(key) for key in keys]).exclude(head_sha="")
    if shas := sorted(set(found.values_list("head_sha", flat=True))):
        look_at_reported.delay(shas)


def heed_asked(keys: list[str]) -> None:
    """Wake-up handler of `gate_asked`."""
    look_at_commits.delay(keys)


def heed_blocking(keys: list[str]) -> None:
    """Wake-up handler of `blocking_changed`: wakes the gate for what it said lately, done on the spot."""
    for repository in Repository.objects.filter(pk__in=[int(key) for key in keys]).order_by("pk"):
        breaking.say_anew(repository, now=now())


@shared_task
def look_at_jobs(repository_ids: list[int]) -> int:
    """Ask the gate about the commits whose jobs have changed lately."""
    moment = now()
    since = moment - CHANGED_WITHIN
    of_these = Job.objects.filter(repository__in=repository_ids, pr_number__isnull=False).exclude(head_sha="")
    seen = of_these.filter(first_seen_at__gte=moment - services.SAID_WITHIN)
    touched = seen.filter(first_seen_at__gte=since) | seen.filter(completed_at__gte=since)
    touched |= seen.filter(judged_at__gte=since)
    shas = touched.order_by().values_list("head_sha", flat=True).distinct()
    return services.look_again(list(shas), now=moment)


@shared_task
def look_at_commits(shas: list[str]) -> int:
    """Ask the gate about these commits."""
    return services.look_again(shas, now=now())


@shared_task
def look_at_reported(shas: list[str]) -> int:
    """Ask the gate about commits of which a report was read: about these, and about those that stand on them."""
    moment = now()
    return services.look_again([*shas, *services.heads_upon(shas, now=moment)], now=moment)


@shared_task
def sweep_breakers() -> int:
    """Open and close breakers as the policy says."""
    return breaking.sweep(now=now())


@shared_task
def sweep_waiting() -> int:
    """Ask the gate again about commits of which time alone may change what it says."""
    moment = now()
    return services.look_again(services.heads_that_wait(now=moment), now=moment)
