"""Background tasks of quarantines: each fetches by key, calls services, and may run twice without harm."""

from celery import shared_task

from apps.core.clock import now
from apps.quarantine import upstream_sync

_AT_ONCE = 50


def enqueue_reports(keys: list[str]) -> None:
    """Wake-up handler of `report_ready`, after results' own."""
    for key in keys:
        look_through.delay(int(key))


@shared_task
def look_through(report_pk: int) -> int:
    """Find the evidence of flaky tests in one report, and propose what follows. Returns how many records changed."""
    from apps.quarantine import detection, evidence  # numpy and pyarrow: for the heavy worker's memory alone

    report = evidence.settle(report_pk=report_pk, now=now())
    return detection.detect(place=detection.Place(report.platform, report.variant), now=now())


@shared_task
def expire_quarantines() -> int:
    """End what has run out. Returns how many records."""
    from apps.quarantine import sweep  # numpy and pyarrow: for the heavy worker's memory alone

    return sweep.expire(now=now())


@shared_task
def sweep_quarantines() -> int:
    """End what has vanished; propose releases that are proven. Returns how many records changed."""
    from apps.quarantine import sweep  # numpy and pyarrow: for the heavy worker's memory alone

    return sweep.vanish(now=now()) + sweep.propose_releases(now=now())


@shared_task
def fetch_upstream_list() -> None:
    """Take upstream's list of disabled tests as it is now, where its address is set."""
    upstream_sync.follow(now=now())


@shared_task
def sweep_evidence() -> int:
    """Hand on reports whose evidence is behind: whose task was lost, or of which something else has changed."""
    from apps.quarantine.evidence import unsettled

    keys = list(unsettled().values_list("pk", flat=True)[:_AT_ONCE])
    for key in keys:
        look_through.delay(key)
    return len(keys)
