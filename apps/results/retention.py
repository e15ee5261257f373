"""How long uploaded bytes are kept: a number of days after they were read, by setting. What was made of them stays."""

import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from apps.core import rounds
from apps.core.wakeups import wake
from apps.results.enums import ReportState
from apps.results.models import Report, Upload, UploadPart
from apps.results.models_reports import raw_name
from apps.results.topics import FILE_UNWANTED

# So many reports a turn: each turn is one transaction.
REPORTS_AT_ONCE = 500


@transaction.atomic
def forget_raw(*, now: datetime.datetime) -> int:
    """Let go of the bytes of reports whose newest upload is older than settings.RAW_DAYS. Returns how many reports.

    A report goes whole, and only once it was read: its shards are read together. Bytes that another upload needs are
    kept for that one (removal.forget_files asks).
    """
    if not settings.RAW_DAYS:
        rounds.off()
        return 0
    oldest = now - datetime.timedelta(days=settings.RAW_DAYS)
    kept = Upload.objects.filter(report=OuterRef("pk"), raw_removed_at=None)
    is_read = Q(state=ReportState.READY, revision=F("wanted")) | Q(state=ReportState.FAILED)
    old = Report.objects.filter(is_read, Exists(kept.filter(received_at__lt=oldest)))
    found = old.exclude(Exists(kept.filter(received_at__gte=oldest))).order_by("pk")
    # Whoever uploads more into one of them meanwhile holds its row, and its bytes are wanted.
    reports = [report.pk for report in found.select_for_update(skip_locked=True)[:REPORTS_AT_ONCE]]
    digests = set(UploadPart.objects.filter(upload__report__in=reports).values_list("sha256", flat=True))
    Upload.objects.filter(report__in=reports, raw_removed_at=None).update(raw_removed_at=now)
    wake(FILE_UNWANTED, sorted(raw_name(digest) for digest in digests), now=now)
    return len(reports)
