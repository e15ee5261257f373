"""Reports for tests: rows as pages read them; by `read_report`, of the bytes a CI sends (not in a transaction)."""

import hashlib
import itertools
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from apps.core.clock import now
from apps.platforms.models import Platform, Repository
from apps.results.enums import FileState, ReportState
from apps.results.models import InTreeSource, Removal, Report, ReportFile, Upload, UploadPart
from apps.results.models_reports import OUTCOME_COUNTS, raw_name
from apps.results.parsing import parse
from tests.factories.jobs import days_ago

_numbers = itertools.count(1)


def report(repository: Repository | None, **fields: Any) -> Report:
    """A report of one shard that waits to be parsed; with counts by outcome it is ready."""
    number, at = next(_numbers), days_ago(3)
    counts = {name: fields.pop(name) for name in OUTCOME_COUNTS if name in fields}
    values: dict[str, Any] = {
        "variant": "default",
        "report_key": f"run {number}.1 / CI / test-ops",
        "head_sha": f"{number:040x}",
        "run_id": str(number),
        "run_attempt": 1,
        "workflow": "CI",
        "job_name": "test-ops",
        "level": 2,
        "wanted": 1,
        "received_at": at,
        "changed_at": at,
    }
    if counts:
        values |= {"state": ReportState.READY, "revision": 1, "progress": 100, "parsed_at": at}
        values |= dict.fromkeys(OUTCOME_COUNTS, 0) | counts | {"total": sum(counts.values())}
        values["outcomes_name"] = f"outcomes/{number}/1.parquet"
    made = Report.objects.create(repository=repository, **values | fields)
    if made.state != ReportState.REMOVED:
        upload(made)
    return made


def upload(of: Report, **fields: Any) -> Upload:
    """One shard of it, of one file."""
    values = {"digest": "0" * 64, "bytes": 5_120_000, "claims": {}, "received_at": of.received_at}
    job = {name: getattr(of, name) for name in ("run_id", "run_attempt", "workflow", "job_name")}
    made = Upload.objects.create(report=of, **(values | job | fields))
    sha256 = f"{made.pk:064x}"
    UploadPart.objects.create(upload=made, position=0, name="reports.tar.gz", sha256=sha256, bytes=made.bytes)
    return made


def file(of: Report, name: str, *notes: dict[str, Any], state: FileState = FileState.PARSED) -> ReportFile:
    """One file within it."""
    position = of.files.count()
    return ReportFile.objects.create(
        report=of, position=position, name=name, state=state, parsed=5, dropped=len(notes), notes=list(notes)
    )


def removed(repository: Repository) -> Report:
    """A report that was taken down."""
    made = report(repository, state=ReportState.REMOVED)
    Removal.objects.create(
        report=made,
        reason="It held a customer's name.",
        removed_at=days_ago(2),
        actor_kind="user",
        actor_id="1",
        actor_label="mona",
        digests=["0" * 64],
        event_seq=1,
    )
    return made


def in_tree(platform: Platform) -> InTreeSource:
    """A workflow of upstream that reports for a platform."""
    return InTreeSource.objects.create(
        platform=platform,
        workflow=".github/workflows/_linux-test.yml",
        ref="refs/heads/main",
        device="cuda",
        github_id=1,
        github_owner_id=2,
        added_at=days_ago(9),
    )


_runs = itertools.count(9_001)


def read_report(repository: Repository, content: bytes, /, **fields: Any) -> Report:
    """One report of one shard, parsed."""
    number, moment = str(next(_runs)), now()
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
