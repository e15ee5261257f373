"""Taking an upload: from a verified identity, its meta and its files to rows, bytes that are safe, and a wake-up."""

import datetime
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import F, Sum

from apps.core.errors import Problem
from apps.core.storage import store_once
from apps.core.wakeups import wake
from apps.relay import modes
from apps.relay.callbacks import compare_claims
from apps.relay.claims import Identity
from apps.relay.fields import refuse, sha
from apps.relay.models import Delivery, Dispatch
from apps.relay.policy import DISPATCHED_EVENTS, UNDISPATCHED_EVENTS
from apps.results.enums import ReportFlag, ReportState
from apps.results.incoming import Incoming
from apps.results.linking import LINKED_WITHIN, job_of
from apps.results.meta import Meta
from apps.results.models import Removal, Report, Upload, UploadPart
from apps.results.models_reports import raw_name
from apps.results.origins import Origin
from apps.results.quotas import DAY_MAX_BYTES
from apps.results.topics import REPORT_RECEIVED

log = logging.getLogger(__name__)

RECEIVED, DUPLICATE = "received", "duplicate"


@dataclass(frozen=True)
class Taken:
    """What an upload came to: the report's public id, and whether it was new."""

    report: UUID
    status: str


@dataclass(frozen=True)
class Subject:
    """What a report is about: `dispatch` where the hub sent it there, else a claim."""

    event: str
    head_sha: str
    dispatch: Dispatch | None
    is_proved: bool


def take(*, identity: Identity, origin: Origin, meta: Meta, files: Sequence[Incoming], now: datetime.datetime) -> Taken:
    """Store an upload. When this returns, its bytes are safe, its rows are committed and a parse is asked for.

    The same key, shard and bytes again are `duplicate`. Raises Problem: `claims_contradict`, `never_dispatched`,
    `report_conflict` (same shard, other bytes; another number of shards; another owner), `report_removed`,
    `quota_used`, `malformed` (no file), `unavailable` (the storage fails: try again).
    """
    if not files:
        raise Problem("malformed", "file: is missing. Send the report as a file: curl -F file=@report.xml.", "file")
    compare_claims(identity, run_id=meta.run_id, run_attempt=meta.run_attempt, within="")
    subject = _subject(origin, meta)
    with transaction.atomic():
        origin.lock()
        report = _report(origin, meta, subject, now)
        if (known := report.uploads.filter(shard=meta.shard).first()) is not None:
            return _again(report, known, files)
        _refuse_removed(origin, files)
        _keep_quota(origin, files, now)
        upload = Upload.objects.create(
            report=report,
            shard=meta.shard,
            digest=digest_of(files),
            bytes=sum(file.size or 0 for file in files),
            run_id=meta.run_id,
            run_attempt=meta.run_attempt,
            workflow=meta.workflow,
            job_name=meta.job_name,
            leg=meta.leg,
            check_run_id=meta.check_run_id,
            job=job_of(origin.repository_id, meta, since=now - LINKED_WITHIN),
            claims=identity.claims,
            received_at=now,
        )
        UploadPart.objects.bulk_create(
            UploadPart(upload=upload, position=position, name=str(file.name), sha256=file.sha256, bytes=file.size or 0)
            for position, file in enumerate(files)
        )
        _want_more(report, now)
        _refuse_forgotten(report)
        _store(files)
        wake(REPORT_RECEIVED, [str(report.pk)], now=now)
    return Taken(report.public_id, RECEIVED)


def digest_of(files: Sequence[Incoming]) -> str:
    """The digest of an upload: of what its files are called and hold, in order."""
    lines = (f"{file.sha256} {file.name}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def lock_names(names: Sequence[str]) -> None:
    """Let nobody else store or remove files of these names until the transaction ends. In order, so that none waits
    for another in a circle."""
    with connection.cursor() as cursor:
        for name in sorted(set(names)):
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"results: file {name}"])


def _subject(origin: Origin, meta: Meta) -> Subject:
    """Commit and event: of our own delivery where it names one that its repository was sent, never from the meta then.
    Raises Problem `never_dispatched`, as for callbacks."""
    is_informational = meta.event_type in UNDISPATCHED_EVENTS
    if origin.source is None and meta.delivery_id and not is_informational:
        sent = Dispatch.objects.select_related("delivery").defer("delivery__body")
        dispatch = sent.filter(delivery__delivery_id=meta.delivery_id, repository=origin.repository_id).first()
        if dispatch is not None:
            return Subject(dispatch.delivery.event, dispatch.delivery.head_sha, dispatch, True)
        is_ours = Delivery.objects.filter(delivery_id=meta.delivery_id).exists()
        if is_ours or modes.current().dispatches:
            detail = f"delivery_id: the hub never sent {meta.delivery_id[:60]} to this repository."
            raise Problem("never_dispatched", detail, "delivery_id")
    if meta.event_type in DISPATCHED_EVENTS and not meta.delivery_id and origin.source is None:
        raise refuse("delivery_id", None, f"the delivery_id of the {meta.event_type} dispatch")
    head_sha = meta.head_sha or (sha(meta.delivery_id) if is_informational else "")
    return Subject(meta.event_type, head_sha, None, bool(head_sha) and head_sha == origin.proved_sha)


def _report(origin: Origin, meta: Meta, subject: Subject, now: datetime.datetime) -> Report:
    """The report that the upload is a shard of, made where it is the first. Raises Problem `report_conflict` or
    `report_removed`."""
    known = origin.reports().filter(report_key=meta.report_key, variant=meta.variant).first()
    if known is None:
        is_claim = bool(subject.head_sha) and not subject.is_proved
        return Report.objects.create(
            **origin.columns,
            variant=meta.variant,
            report_key=meta.report_key,
            dispatch=subject.dispatch,
            delivery_id=meta.delivery_id,
            event=subject.event,
            head_sha=subject.head_sha,
            run_id=meta.run_id,
            run_attempt=meta.run_attempt,
            workflow=meta.workflow,
            job_name=meta.job_name,
            torch_version=meta.torch_version,
            hardware=meta.hardware,
            level=origin.level,
            held_owner_id=origin.held_owner_id,
            shards=meta.shards,
            flags=[ReportFlag.CLAIMED_COMMIT.value] if is_claim else [],
            received_at=now,
            changed_at=now,
        )
    if known.state == ReportState.REMOVED:
        raise Problem("report_removed", f"report_key: the report {known.public_id} was taken down.", "report_key")
    if (known.held_owner_id if known.is_held else None) != origin.held_owner_id:
        detail = f"report_key: the report {known.public_id} began under another owner. Upload under another key."
        raise Problem("report_conflict", detail, "report_key")
    if known.shards != meta.shards:
        detail = f"shards: the report {known.public_id} has {known.shards} shards, this upload says {meta.shards}."
        raise Problem("report_conflict", detail, "shards")
    if subject.head_sha and subject.head_sha != known.head_sha:
        about = known.head_sha or "no commit"
        detail = f"head_sha: the report {known.public_id} is about {about}, this upload about {subject.head_sha}."
        raise Problem("report_conflict", detail, "head_sha")
    return known


def _again(report: Report, known: Upload, files: Sequence[Incoming]) -> Taken:
    if known.digest == digest_of(files):
        return Taken(report.public_id, DUPLICATE)
    raise Problem(
        "report_conflict",
        f"report_key: shard {known.shard} of the report {report.public_id} came with other bytes, of job "
        f"{known.job_name[:60]!r} in run {known.run_id}.",
        "report_key",
    )


def _refuse_forgotten(report: Report) -> None:
    """All shards are read together. Asked once the report's row is held: whoever forgets bytes holds it too."""
    if report.uploads.exclude(raw_removed_at=None).exists():
        detail = (
            f"report_key: the shards of {report.public_id} were read long ago, and their bytes are not kept any more. "
            "Upload under another key."
        )
        raise Problem("report_conflict", detail, "report_key")


def _refuse_removed(origin: Origin, files: Sequence[Incoming]) -> None:
    digests = [file.sha256 for file in files]
    taken_down = Removal.objects.filter(report__in=origin.reports(), digests__overlap=digests).first()
    if taken_down is not None:
        raise Problem("report_removed", f"file: these bytes were taken down: {taken_down.reason}", "file")


def _keep_quota(origin: Origin, files: Sequence[Incoming], now: datetime.datetime) -> None:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    today = Upload.objects.filter(report__in=origin.reports(), received_at__gte=midnight)
    used = today.aggregate(used=Sum("bytes"))["used"] or 0
    if used + sum(file.size or 0 for file in files) <= DAY_MAX_BYTES:
        return
    wait = int((midnight + datetime.timedelta(days=1) - now).total_seconds()) + 1
    detail = f"file: {used:,} of {DAY_MAX_BYTES:,} bytes of this UTC day are used up, and this upload is beyond them."
    raise Problem("quota_used", detail, "file", headers={"Retry-After": str(wait)})


def _want_more(report: Report, now: datetime.datetime) -> None:
    """Ask for another revision. A report that a worker has in its hands stays so: that one sees afterwards that more is
    wanted. The first statement holds the row, so the second sees it as it is."""
    row = Report.objects.filter(pk=report.pk)
    row.update(wanted=F("wanted") + 1, attempts=0, changed_at=now)
    row.exclude(state=ReportState.PARSING).update(state=ReportState.RECEIVED, progress=0, failure="")


def _store(files: Sequence[Incoming]) -> None:
    """Move the bytes to their place. Whoever has stored the same bytes has stored these."""
    lock_names([raw_name(file.sha256) for file in files])
    try:
        for file in files:
            store_once(default_storage, raw_name(file.sha256), file)
    except OSError as error:
        log.exception("an upload cannot be stored")
        detail = "The hub cannot store files at the moment."
        raise Problem("unavailable", detail, headers={"Retry-After": "60"}) from error
