"""Background tasks of reports: each fetches by key, calls one service, and may run twice without harm."""

import logging

from celery import shared_task

from apps.core import clock
from apps.core.clock import now
from apps.results import claimed_commits, incoming, leases, linking, retention, tasks
from apps.results.models import Report

_PUBLISHED_AT_ONCE = 50
_COVERED_AT_ONCE = 50

log = logging.getLogger(__name__)


def enqueue_parses(keys: list[str]) -> None:
    """Wake-up handler of `report_received`."""
    for key in keys:
        parse_report.delay(int(key))


def heed_changed_jobs(keys: list[str]) -> None:
    """Wake-up handler of `job_changed`: its days are counted, and uploads that wait for their job find it."""
    tasks.enqueue_counts(keys)
    repository_ids = linking.repositories_with_uploads({int(key.partition(":")[0]) for key in keys}, now=now())
    if repository_ids:
        settle_jobs.delay(repository_ids)


def judge_ready(keys: list[str]) -> None:
    """Wake-up handler of `report_ready`: the jobs hear what their tests say."""
    found = Report.objects.filter(pk__in=[int(key) for key in keys], repository__isnull=False)
    if repository_ids := sorted(set(found.values_list("repository_id", flat=True))):
        settle_jobs.delay(repository_ids)


@shared_task
def settle_jobs(repository_ids: list[int]) -> int:
    """Link uploads of these repositories to their jobs, and judge those."""
    return linking.settle_jobs(repository_ids=repository_ids, now=now())


@shared_task
def parse_report(report_pk: int) -> str:
    """Parse one report, if it waits and nobody else is at it."""
    from apps.results.parsing import parse  # pyarrow: for the heavy worker's memory alone

    return parse(report_pk=report_pk, clock=now)


@shared_task
def publish_names() -> int:
    """Make the tests of new public reports findable."""
    from apps.results.public_names import publish  # numpy and pyarrow: for the heavy worker's memory alone

    return publish(reports=_PUBLISHED_AT_ONCE)


@shared_task
def count_coverage() -> int:
    """Count the coverage of reports that were read meanwhile."""
    from apps.results import coverage  # pyarrow: for the heavy worker's memory alone

    return coverage.count_coverage(reports=_COVERED_AT_ONCE, now=now())


@shared_task
def sweep_reports() -> int:
    """Wake reports that wait for nobody, and remove what dead uploads left."""
    incoming.forget_stale(now=clock.real(now()))
    return leases.sweep(now=now())


@shared_task
def forget_raw() -> int:
    """Let go of uploaded bytes that were kept long enough."""
    return retention.forget_raw(now=now())


@shared_task
def look_up_claimed_commits() -> int:
    """Ask upstream about commits that reports claim."""
    return claimed_commits.look_up_commits(now=now())
