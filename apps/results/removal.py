"""Taking a report down: what was uploaded and what was made of it goes, a tombstone says why."""

import datetime

from django.core.files.storage import default_storage
from django.db import transaction

from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.services import Actor, Subject, record
from apps.core.errors import Problem
from apps.core.wakeups import wake
from apps.platforms.services import REASON_MAX
from apps.relay.corroboration import mark_red_apart
from apps.relay.enums import Flag
from apps.relay.models import Job
from apps.results.enums import ReportState
from apps.results.models import Coverage, Finding, Removal, Report, ReportFile, UploadPart
from apps.results.models_reports import COUNTS, raw_name
from apps.results.public_names import withdraw
from apps.results.topics import FILE_UNWANTED, REPORT_READY
from apps.results.uploads import lock_names


@transaction.atomic
def remove_report(*, report: Report, reason: str, actor: Actor, now: datetime.datetime) -> Event:
    """Take a report down for good: its bytes (unless another upload has the same), outcomes, files and findings.

    Returns the log's event. Raises Problem: `malformed` (no reason), `report_removed`.
    """
    reason = reason.strip()
    if not 0 < len(reason) <= REASON_MAX:
        raise Problem("malformed", f"reason: needs 1 to {REASON_MAX} characters.", "reason")
    locked = Report.objects.select_for_update().get(pk=report.pk)
    if locked.state == ReportState.REMOVED:
        raise Problem("report_removed", "It was taken down already.")
    withdraw(locked)
    digests = sorted(set(UploadPart.objects.filter(upload__report=locked).values_list("sha256", flat=True)))
    counts = locked.counts
    unwanted = [raw_name(digest) for digest in digests] + [name for name in [locked.outcomes_name] if name]
    _take_back(locked, now)
    locked.uploads.all().delete()
    ReportFile.objects.filter(report=locked).delete()
    Finding.objects.filter(report=locked).delete()
    Coverage.objects.filter(report=locked).delete()
    wake(FILE_UNWANTED, unwanted, now=now)
    wake(REPORT_READY, [str(locked.pk)], now=now)
    event = record(
        action=Action.REPORT_REMOVED,
        actor=actor,
        subject=Subject("report", str(locked.public_id), str(report)),
        summary=f"The report of {report.origin_name}, {report.job_name}, was taken down",
        reason=reason,
        before={"state": locked.state, "counts": counts or {}},
        after={"state": ReportState.REMOVED.value},
        evidence={"sha256": digests},
        now=now,
    )
    Removal.objects.create(
        report=locked,
        reason=reason,
        removed_at=now,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_label=actor.label,
        digests=digests,
        event_seq=event.seq,
    )
    Report.objects.filter(pk=locked.pk).update(
        state=ReportState.REMOVED,
        lease=None,
        lease_until=None,
        failure="",
        flags=[],
        outcomes_name="",
        changed_at=now,
        **dict.fromkeys(COUNTS),
    )
    return event


def _take_back(report: Report, now: datetime.datetime) -> None:
    """What its tests excuse in its jobs is not known any more."""
    said = Job.objects.filter(flags__contains=[Flag.RED_APART.value], pk__in=report.uploads.values("job"))
    for job in said.select_for_update(no_key=True).order_by("pk"):
        mark_red_apart(job=job, is_apart=False, now=now)


def forget_files(names: list[str]) -> None:
    """Wake-up handler of `file_unwanted`: remove what no row names any more. Whoever stores the same name waits, or is
    waited for, and then it is named."""
    lock_names(names)
    for name in names:
        if not _is_named(name):
            default_storage.delete(name)


def _is_named(name: str) -> bool:
    if name.startswith("raw/"):
        return UploadPart.objects.filter(sha256=name.rsplit("/", 1)[1], upload__raw_removed_at=None).exists()
    return Report.objects.filter(outcomes_name=name).exists()
