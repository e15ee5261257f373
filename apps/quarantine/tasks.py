"""Background tasks of quarantines: each fetches by key, calls services, and may run twice without harm."""

from celery import shared_task

from apps.core.clock import now


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
