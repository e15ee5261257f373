"""The statements of the callback path, written by hand: one read, one guarded write.

Measured against the ORM they halve the time of a callback (docs/adr/0005). Each write is one statement, so the job's
transition and its callback's row are one transaction without a further round trip; a lost race returns None and the
caller reads again.
"""

import datetime
import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.core.ids import public_id
from apps.core.statements import prepared
from apps.relay.enums import Answer, Bucket, JobStatus
from apps.relay.fields import Callback
from apps.relay.policy import Counts, Row, State
from apps.relay.topics import JOB_CHANGED

# ruff: noqa: S608  statements are put together from constants of this file; values are always parameters

READ = """
SELECT d.event, d.head_sha, d.pr_number, x.id,
       j.id, j.public_id, j.revision, j.status, j.conclusion, j.passed, j.failed, j.skipped, j.total,
       j.reported_started_at, j.start_seen_at IS NOT NULL, j.flags
FROM (VALUES (1)) AS one
LEFT JOIN relay_delivery d ON d.delivery_id = %(delivery_id)s
LEFT JOIN relay_dispatch x ON x.delivery_id = d.id AND x.repository_id = %(repository_id)s
LEFT JOIN relay_job j ON j.repository_id = %(repository_id)s AND md5(j.delivery_id) = md5(%(delivery_id)s)
    AND j.run_id = %(run_id)s AND j.run_attempt = %(run_attempt)s AND md5(j.workflow) = md5(%(workflow)s)
    AND md5(j.job_name) = md5(%(job_name)s) AND md5(j.leg) = md5(%(leg)s)
"""

_KEEP = """
INSERT INTO relay_callback (repository_id, job_id, received_at, answer, report, claims, body_digest)
SELECT %(repository_id)s, {job}, %(now)s, %(answer)s, %(report)s, %(claims)s, %(body_digest)s {source}
ON CONFLICT DO NOTHING
"""

# The days whose counts the change touches: the job's own, and those of attempts that this one supersedes.
_WAKE = f"""
INSERT INTO core_wakeup (topic, key, created_at)
SELECT '{JOB_CHANGED}', %(repository_id)s || ':' || (seen.at AT TIME ZONE 'UTC')::date, %(now)s
FROM (
    SELECT first_seen_at AS at FROM job
    UNION SELECT e.first_seen_at FROM relay_job e WHERE %(run_attempt)s > 1
        AND e.repository_id = %(repository_id)s AND md5(e.delivery_id) = md5(%(delivery_id)s)
        AND e.run_id = %(run_id)s AND e.run_attempt < %(run_attempt)s
) AS seen
ON CONFLICT DO NOTHING
"""

INSERT = f"""
WITH job AS (
    INSERT INTO relay_job (public_id, repository_id, dispatch_id, delivery_id, event_type, run_id, run_attempt,
        workflow, job_name, leg, check_run_id, url, artifact_url, head_sha, pr_number, status, conclusion, bucket,
        flags, passed, failed, skipped, total, reported_started_at, reported_completed_at, first_seen_at,
        start_seen_at, completed_at, revision)
    VALUES (%(public_id)s, %(repository_id)s, %(dispatch_id)s, %(delivery_id)s, %(event_type)s, %(run_id)s,
        %(run_attempt)s, %(workflow)s, %(job_name)s, %(leg)s, %(check_run_id)s, %(url)s, %(artifact_url)s,
        %(head_sha)s, %(pr_number)s, %(status)s, %(conclusion)s, %(bucket)s, %(flags)s, %(passed)s, %(failed)s,
        %(skipped)s, %(total)s, %(started_at)s, %(reported_completed_at)s, %(now)s, %(start_seen_at)s,
        %(completed_at)s, 0)
    ON CONFLICT (repository_id, md5(delivery_id), run_id, run_attempt, md5(workflow), md5(job_name), md5(leg))
    DO NOTHING RETURNING id, first_seen_at
), callback AS ({_KEEP.format(job="job.id", source="FROM job")}), wakeup AS ({_WAKE})
SELECT id FROM job
"""

COMPLETE = f"""
WITH job AS (
    UPDATE relay_job SET status = %(status)s, conclusion = %(conclusion)s, bucket = %(bucket)s,
        passed = %(passed)s, failed = %(failed)s, skipped = %(skipped)s, total = %(total)s,
        reported_started_at = COALESCE(reported_started_at, %(started_at)s),
        reported_completed_at = %(reported_completed_at)s, completed_at = %(completed_at)s,
        url = COALESCE(NULLIF(%(url)s, ''), url),
        artifact_url = COALESCE(NULLIF(%(artifact_url)s, ''), artifact_url), flags = %(flags)s,
        revision = revision + 1
    WHERE id = %(job_id)s AND revision = %(revision)s RETURNING id, first_seen_at
), callback AS ({_KEEP.format(job="job.id", source="FROM job")}), wakeup AS ({_WAKE})
SELECT id FROM job
"""

FILL_START = f"""
WITH job AS (
    UPDATE relay_job SET reported_started_at = COALESCE(reported_started_at, %(started_at)s),
        start_seen_at = %(now)s, flags = %(flags)s, revision = revision + 1
    WHERE id = %(job_id)s AND revision = %(revision)s RETURNING id, first_seen_at
), callback AS ({_KEEP.format(job="job.id", source="FROM job")}), wakeup AS ({_WAKE})
SELECT id FROM job
"""

KEEP = _KEEP.format(job="%(job_id)s", source="")


@dataclass(frozen=True)
class Known:
    """What PostgreSQL knows about a callback before it is applied. `dispatch_id` None: never sent to the repository."""

    event: str | None
    head_sha: str
    pr_number: int | None
    dispatch_id: int | None
    job_id: int | None
    job_public_id: UUID | None
    revision: int
    flags: frozenset[str]
    state: State


def read(repository_id: int, callback: Callback) -> Known:
    """One round trip: delivery, dispatch and job of this callback, where they exist."""
    with prepared() as cursor:
        cursor.execute(READ, _key(repository_id, callback))
        row = cursor.fetchone()
    event, head_sha, pr_number, dispatch_id, job_id, job_public_id, revision, status, conclusion, *rest = row
    passed, failed, skipped, total, started_at, start_seen, flags = rest
    state = State()
    if job_id is not None:
        counts = Counts(passed, failed, skipped, total)
        state = State(JobStatus(status), conclusion, counts, started_at, start_seen)
    return Known(
        event,
        head_sha or "",
        pr_number,
        dispatch_id,
        job_id,
        job_public_id,
        revision or 0,
        frozenset(flags or ()),
        state,
    )


def write(
    repository_id: int,
    callback: Callback,
    known: Known,
    row: Row,
    *,
    bucket: Bucket,
    claims: dict[str, str],
    now: datetime.datetime,
) -> UUID | None:
    """Apply one cell of the matrix and keep the callback. Returns the job's public id, or None when another callback
    was faster and the caller must read again."""
    report, is_new = callback.report, known.job_id is None
    is_end = report.status is JobStatus.COMPLETED
    job_public_id = known.job_public_id or public_id()
    values = _key(repository_id, callback) | {
        "public_id": job_public_id,
        "job_id": known.job_id,
        "revision": known.revision,
        "dispatch_id": known.dispatch_id,
        "event_type": known.event or callback.event_type,
        "check_run_id": callback.check_run_id,
        "url": callback.url,
        "artifact_url": callback.artifact_url,
        # Of a dispatched job the hub's own delivery says which commit and pull request, never the body.
        "head_sha": known.head_sha if known.dispatch_id else callback.head_sha,
        "pr_number": known.pr_number if known.dispatch_id else callback.pr_number,
        "status": report.status.value,
        "conclusion": report.conclusion,
        "bucket": bucket.value,
        "flags": sorted((known.flags - set(row.remove)) | set(row.add)),
        "passed": report.counts.passed,
        "failed": report.counts.failed,
        "skipped": report.counts.skipped,
        "total": report.counts.total,
        "started_at": report.started_at,
        "reported_completed_at": report.completed_at,
        "start_seen_at": None if is_end else now,
        "completed_at": now if is_end else None,
    }
    values |= _kept(callback, row.answer, claims, now)
    if row.answer is Answer.CONFLICT:
        _execute(KEEP, values)
        return job_public_id
    statement = INSERT if is_new else FILL_START if row.answer is Answer.LATE else COMPLETE
    return job_public_id if _execute(statement, values) else None


def keep_private(repository_id: int, callback: Callback, *, claims: dict[str, str], now: datetime.datetime) -> None:
    """Keep a callback of a repository whose results are not public. The same body again changes nothing."""
    values = {"repository_id": repository_id, "job_id": None} | _kept(callback, Answer.IGNORED, claims, now)
    _execute(KEEP, values)


def _execute(statement: str, values: dict[str, Any]) -> bool:
    with prepared() as cursor:
        cursor.execute(statement, values)
        return cursor.rowcount == 1


def _key(repository_id: int, callback: Callback) -> dict[str, Any]:
    return {
        "repository_id": repository_id,
        "delivery_id": callback.delivery_id,
        "run_id": callback.run_id,
        "run_attempt": callback.run_attempt,
        "workflow": callback.workflow,
        "job_name": callback.job_name,
        "leg": callback.leg,
    }


def _kept(callback: Callback, answer: Answer, claims: dict[str, str], now: datetime.datetime) -> dict[str, Any]:
    report = callback.report
    said = {
        "event_type": callback.event_type,
        "delivery_id": callback.delivery_id,
        "run_id": callback.run_id,
        "run_attempt": callback.run_attempt,
        "workflow": callback.workflow,
        "job_name": callback.job_name,
        "check_run_id": callback.check_run_id,
        "url": callback.url,
        "status": report.status.value,
        "conclusion": report.conclusion,
        "started_at": report.started_at.isoformat() if report.started_at else None,
        "completed_at": report.completed_at.isoformat() if report.completed_at else None,
        "passed": report.counts.passed,
        "failed": report.counts.failed,
        "skipped": report.counts.skipped,
        "total": report.counts.total,
    }
    return {
        "now": now,
        "answer": answer.value,
        "report": json.dumps(said),
        "claims": json.dumps(claims),
        "body_digest": callback.body_digest,
    }
