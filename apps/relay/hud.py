"""Reading upstream's job history from a file, so that windows and tenure do not restart. Source:
docs/operator-reference.md, "The form of imported history".

JSON lines. A line is a job, or with `"kind": "level"` a level that a repository held. A job's fields are a callback's
under other names: the same table reads them and the same matrix applies them, at the times that the file tells.
"""

import dataclasses
import datetime
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from apps.audit.enums import Action
from apps.audit.services import Actor, Subject, record
from apps.core.errors import Problem
from apps.platforms.models import Repository
from apps.platforms.policy import BY_CODE, PUBLIC_FROM
from apps.platforms.selectors import former_names
from apps.platforms.tenure import import_interval
from apps.relay import callbacks, fields, policy, store
from apps.relay.enums import Answer, Flag, JobStatus
from apps.relay.lookups import is_silent
from apps.relay.observer import keep_measures

LINE_MAX_BYTES = 262_144
# No downstream's job is older than the relay.
EARLIEST = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
_INT32 = 2_147_483_647
JOB, LEVEL = "job", "level"

# The file's name of a field → its path in a callback.
COLUMNS: dict[str, str] = {
    "event_type": "event_type",
    "delivery_id": "delivery_id",
    "head_sha": "payload.head_sha",
    "workflow_name": "workflow.name",
    "job_name": "workflow.job_name",
    "check_run_id": "workflow.check_run_id",
    "run_id": "workflow.run_id",
    "run_attempt": "workflow.run_attempt",
    "status": "workflow.status",
    "conclusion": "workflow.conclusion",
    "started_at": "workflow.started_at",
    "completed_at": "workflow.completed_at",
    "url": "workflow.url",
    "artifact_url": "workflow.artifact_url",
    "passed": "workflow.test_results.passed",
    "failed": "workflow.test_results.failed",
    "skipped": "workflow.test_results.skipped",
    "total": "workflow.test_results.total",
}
_NAMES = {path: name for name, path in COLUMNS.items()}


@dataclass
class Outcome:
    """What an import came to. `refused`: (line, why) each."""

    imported: int = 0
    known: int = 0
    levels: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)


def import_history(*, lines: Iterable[bytes], source: str, actor: Actor, now: datetime.datetime) -> Outcome:
    """Import a file line by line, each in a transaction of its own: a line that cannot be read does not hold up the
    others, and the same file again changes nothing. What the hub knows itself stands. The log says when the first job
    came in, and what it all came to."""
    outcome = Outcome()
    repositories = {repository.full_name.lower(): repository for repository in Repository.objects.all()}
    repositories |= {former: repositories[name.lower()] for former, name in former_names().items()}
    digest = hashlib.sha256()
    for number, raw in enumerate(lines, start=1):
        digest.update(raw)
        if not (raw := raw.strip()):
            continue
        try:
            _import_line(raw, repositories, outcome, source=source, actor=actor, now=now)
        except Problem as problem:
            outcome.refused.append((number, problem.detail))
    if outcome.imported:
        with transaction.atomic():
            record(
                action=Action.HISTORY_IMPORTED,
                actor=actor,
                subject=Subject("job", digest.hexdigest(), source),
                summary=f"{outcome.imported:,} jobs imported from {source}",
                after={"jobs": outcome.imported, "lines_refused": len(outcome.refused)},
                evidence={"sha256": digest.hexdigest()},
                now=now,
            )
    return outcome


@transaction.atomic
def _import_line(
    raw: bytes,
    repositories: dict[str, Repository],
    outcome: Outcome,
    *,
    source: str,
    actor: Actor,
    now: datetime.datetime,
) -> None:
    if len(raw) > LINE_MAX_BYTES:
        raise Problem("malformed", f"the line has {len(raw)} bytes, at most {LINE_MAX_BYTES} are read.")
    row = fields.json_object(raw)
    name = row.get("repo")
    repository = repositories.get(name.lower()) if isinstance(name, str) else None
    if repository is None:
        raise Problem("malformed", f"repo: {str(name)[:140]!r} is not known here, list it first.", "repo")
    match row.get("kind", JOB):
        case "level":
            outcome.levels += _import_level(row, repository, source=source, actor=actor, now=now)
        case "job":
            is_new = _import_job(row, repository, body_digest=hashlib.sha256(raw).hexdigest(), source=source, now=now)
            if is_new and not outcome.imported:
                _record_begin(source, actor, now)
            outcome.imported += is_new
            outcome.known += not is_new
        case other:
            raise Problem("malformed", f"kind: {str(other)[:40]!r} is neither {JOB} nor {LEVEL}.", "kind")


def _record_begin(source: str, actor: Actor, now: datetime.datetime) -> None:
    """With the first job, so that what an import that dies has left behind stands in the log."""
    record(
        action=Action.HISTORY_IMPORT_BEGUN,
        actor=actor,
        subject=Subject("job", source, source),
        summary=f"the import of jobs from {source} begins",
        now=now,
        is_decision=False,
    )


# --- levels -------------------------------------------------------------------------------------------------------


def _import_level(
    row: dict[str, Any], repository: Repository, *, source: str, actor: Actor, now: datetime.datetime
) -> bool:
    level = BY_CODE.get(str(row.get("level")))
    if level is None:
        raise Problem("malformed", f"level: {str(row.get('level'))[:40]!r} is none of {', '.join(BY_CODE)}.", "level")
    started_at, ended_at = _moment(row, "from", now), _moment(row, "until", now)
    if started_at is None:
        raise Problem("malformed", "from: is missing, send when the level began.", "from")
    return import_interval(
        repository=repository,
        level=level.number,
        started_at=started_at,
        ended_at=ended_at,
        source=source,
        actor=actor,
        now=now,
    )


def _moment(row: dict[str, Any], name: str, now: datetime.datetime) -> datetime.datetime | None:
    value = row.get(name)
    if value in (None, ""):
        return None
    return _past(fields.time(name, value), name, now)


def _past(moment: datetime.datetime | None, name: str, now: datetime.datetime) -> datetime.datetime | None:
    if moment is not None and not EARLIEST <= moment <= now:
        raise Problem("malformed", f"{name}: {moment:%Y-%m-%dT%H:%M:%SZ} is not between {EARLIEST:%Y} and now.", name)
    return moment


# --- jobs ---------------------------------------------------------------------------------------------------------


def read_job(row: dict[str, Any], *, body_digest: str, now: datetime.datetime) -> fields.Callback:
    """A line's job as a callback. Raises Problem `malformed` that names the file's field."""
    body: dict[str, Any] = {"event_type": policy.PULL_REQUEST}
    for name, path in COLUMNS.items():
        if row.get(name) is None:
            continue
        *parents, last = path.split(".")
        place = body
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = row[name]
    try:
        callback = fields.read_object(body, body_digest=body_digest)
    except Problem as problem:
        path = problem.field or ""
        name = _NAMES.get(path, path)
        raise Problem(problem.code, problem.detail.replace(path, name, 1), name) from None
    report = callback.report
    _past(report.started_at, "started_at", now)
    _past(report.completed_at, "completed_at", now)
    is_end = report.status is JobStatus.COMPLETED
    if is_end and report.completed_at is None:
        raise Problem("malformed", "completed_at: is missing, send when the job ended.", "completed_at")
    if not is_end and report.started_at is None:
        raise Problem("malformed", "started_at: is missing, send when the job began.", "started_at")
    if report.started_at and report.completed_at and report.started_at > report.completed_at:
        raise Problem("malformed", "started_at: is after completed_at.", "started_at")
    return dataclasses.replace(callback, pr_number=_number(row, "pr_number", 2**63 - 1))


def _number(row: dict[str, Any], name: str, cap: int) -> int | None:
    value = row.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= cap:
        raise Problem("malformed", f"{name}: is no number from 0 to {cap}, send one or null.", name)
    return round(value)


def _import_job(
    row: dict[str, Any], repository: Repository, *, body_digest: str, source: str, now: datetime.datetime
) -> bool:
    """Apply a line's job: its start at the time it started, its end at the time it ended. False when it was known."""
    if repository.level < PUBLIC_FROM:
        detail = f"repo: {repository.full_name} is at {repository.level_code}, its results are not public."
        raise Problem("malformed", detail, "repo")
    callback = read_job(row, body_digest=body_digest, now=now)
    queue_seconds = _number(row, "queue_time", _INT32)
    execution_seconds = _number(row, "execution_time", _INT32)
    is_new = False
    for step in _steps(callback):
        is_new |= _apply(repository.pk, step, source)
    known = store.read(repository.pk, callback, _word(source))
    if is_new and known.job_id is not None and is_silent(known.job_id, now=now):
        detail = "status: a job that began so long ago runs no more: send how it ended, or leave it out."
        raise Problem("malformed", detail, "status")
    if is_new and known.job_public_id is not None:
        keep_measures(known.job_public_id, queue_seconds=queue_seconds, execution_seconds=execution_seconds, now=now)
    return is_new


def _steps(callback: fields.Callback) -> list[fields.Callback]:
    """A job's start and end as two reports; a nightly has its end only, as it has when it is called back."""
    report, steps = callback.report, []
    if report.started_at is not None and callback.event_type not in policy.UNDISPATCHED_EVENTS:
        start = policy.Report(JobStatus.IN_PROGRESS, started_at=report.started_at)
        steps.append(dataclasses.replace(callback, report=start))
    return [*steps, callback] if report.status is JobStatus.COMPLETED else steps


def _apply(repository_id: int, callback: fields.Callback, source: str) -> bool:
    """One step. True when it changed something. Raises Problem `malformed` for another end than was imported before."""
    word = _word(source)
    known = store.read(repository_id, callback, word)
    if known.job_id is not None and Flag.IMPORTED not in known.flags:
        return False
    known = dataclasses.replace(known, event=None, dispatch_id=None)
    is_dispatched = callback.event_type not in policy.UNDISPATCHED_EVENTS
    at = _told_at(callback.report)
    found = callbacks.found_flags(known, callback.report, callback.leg, at)
    row = policy.decide(known.state, callback.report, expects_start=is_dispatched, found=found)
    if row.answer is Answer.DUPLICATE:
        return False
    if row.answer is Answer.CONFLICT:
        raise Problem("malformed", f"conclusion: the job was imported as {known.state.conclusion}.", "conclusion")
    try:
        store.write(
            repository_id,
            callback,
            known,
            dataclasses.replace(row, add=(*row.add, Flag.IMPORTED)),
            bucket=policy.bucket_after(known.state, callback.report),
            provenance=known.provenance,
            identity=word,
            has_checks=False,
            is_looked_up=False,
            now=at,
        )
    except store.Raced:
        detail = "the job was changed by another at this moment: import the file again."
        raise Problem("malformed", detail) from None
    return True


def _told_at(report: policy.Report) -> datetime.datetime:
    at = report.completed_at if report.status is JobStatus.COMPLETED else report.started_at
    assert at is not None
    return at


def _word(source: str) -> store.Word:
    return store.Word({"source": "import", "file": source})
