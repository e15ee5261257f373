"""Reports that were uploaded and read, made of the bytes a CI would send. Not inside a transaction."""

import hashlib
import itertools
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from apps.core.clock import now
from apps.platforms.models import Repository
from apps.results.models import Report, Upload, UploadPart
from apps.results.models_reports import raw_name
from apps.results.parsing import parse

_numbers = itertools.count(9_001)


def read_report(repository: Repository, content: bytes, **fields: Any) -> Report:
    """One report of one shard, parsed."""
    number, moment = str(next(_numbers)), now()
    about = {"run_id": number, "run_attempt": 1, "job_name": "test-ops"}
    report = Report.objects.create(
        **{"repository": repository, "variant": "default", "report_key": number, "level": repository.level}
        | {"wanted": 1, "received_at": moment, "changed_at": moment, "head_sha": "ab" * 20}
        | about
        | fields
    )
    digest = hashlib.sha256(content).hexdigest()
    upload = Upload.objects.create(
        report=report, digest=digest, bytes=len(content), claims={}, received_at=moment, **about
    )
    UploadPart.objects.create(upload=upload, position=0, name="report.xml", sha256=digest, bytes=len(content))
    if not default_storage.exists(raw_name(digest)):
        default_storage.save(raw_name(digest), ContentFile(content))
    assert parse(report_pk=report.pk, clock=now) == "ready"
    report.refresh_from_db()
    return report
