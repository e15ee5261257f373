"""The statements of the callback path, written by hand: one read, one guarded write.

Measured against the ORM they halve the time of a callback (docs/adr/0005). Each write is one statement, so the job's
transition and its callback's row are one transaction without a further round trip; a lost race returns None and the
caller reads again.
"""

import datetime
import json
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from django.db import IntegrityError

from apps.core.ids import public_id
from apps.core.statements import prepared
from apps.relay.enums import Answer, Bucket, Flag, JobStatus
from apps.relay.fields import Callback
from apps.relay.policy import FIRST_LOOK_UP, Counts, Row, State
from apps.relay.topics import JOB_CHANGED, JOB_FOR_CHECKS

# ruff: noqa: S608  statements are put together from constants of this file; values are always parameters

# A leg whose end was only inferred still waits for it.
_IS_OPEN = f"(l.status = 'in_progress' OR '{Flag.INFERRED}' = ANY(l.flags))"

# Which job a callback means: its own leg; else the leg that an earlier end of this check run has joined; else, for an
# end that declares no leg, the only open one of its name. An attempt is counted before the request leaves: a dispatch
# without one has not left.
READ = f"""
SELECT d.event, d.head_sha, d.pr_number, x.id, x.attempts > 0, c.body_digest, c.answer,
       j.id, j.public_id, j.revision, j.status, j.conclusion, j.passed, j.failed, j.skipped, j.total,
       j.reported_started_at, j.start_seen_at IS NOT NULL, j.flags, j.leg, j.provenance
FROM (VALUES (1)) AS one
LEFT JOIN relay_delivery d ON d.delivery_id = %(delivery_id)s
LEFT JOIN relay_dispatch x ON x.delivery_id = d.id AND x.repository_id = %(repository_id)s
LEFT JOIN relay_callback c ON c.token_id = %(token_id)s
LEFT JOIN LATERAL (
    SELECT * FROM (
        SELECT l.*, '{Flag.JOINED}' = ANY(l.flags) AND l.joined_leg = %(leg)s AS has_joined,
            {_IS_OPEN} AND COUNT(*) FILTER (WHERE {_IS_OPEN}) OVER () = 1 AS is_only_open
        FROM relay_job l
        WHERE l.repository_id = %(repository_id)s AND md5(l.delivery_id) = md5(%(delivery_id)s)
            AND l.run_id = %(run_id)s AND l.run_attempt = %(run_attempt)s AND md5(l.workflow) = md5(%(workflow)s)
            AND md5(l.job_name) = md5(%(job_name)s)
    ) AS named
    WHERE leg = %(leg)s OR NOT %(is_leg_declared)s AND (has_joined OR %(is_end)s AND is_only_open)
    ORDER BY leg = %(leg)s DESC, has_joined DESC LIMIT 1
) AS j ON TRUE
"""

# A token that another callback has used meanwhile is no conflict to pass over: it undoes the whole statement.
_KEEP = """
INSERT INTO relay_callback (repository_id, job_id, received_at, answer, report, claims, body_digest, token_id)
SELECT %(repository_id)s, {job}, %(now)s, %(answer)s, %(report)s, %(claims)s, %(body_digest)s, %(token_id)s {source}
ON CONFLICT (repository_id, answer, body_digest) WHERE answer IN ('ignored', 'conflict') DO NOTHING
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

# Only where the repository has check runs and the job is about a pull request.
_WAKE_CHECKS = f"""
INSERT INTO core_wakeup (topic, key, created_at)
SELECT '{JOB_FOR_CHECKS}', job.id || ':' || job.revision, %(now)s FROM job
WHERE %(has_checks)s AND job.pr_number IS NOT NULL ON CONFLICT DO NOTHING
"""
_AFTER = f"wakeup AS ({_WAKE}), checks AS ({_WAKE_CHECKS})"
_RETURNING = "RETURNING id, first_seen_at, revision, pr_number"

INSERT = f"""
WITH job AS (
    INSERT INTO relay_job (public_id, repository_id, dispatch_id, delivery_id, event_type, run_id, run_attempt,
        workflow, job_name, leg, check_run_id, url, artifact_url, head_sha, pr_number, status, conclusion, bucket,
        flags, passed, failed, skipped, total, reported_started_at, reported_completed_at, first_seen_at,
        start_seen_at, completed_at, provenance, joined_leg, verdict, github_said, look_up_at, lookups, revision)
    VALUES (%(public_id)s, %(repository_id)s, %(dispatch_id)s, %(delivery_id)s, %(event_type)s, %(run_id)s,
        %(run_attempt)s, %(workflow)s, %(job_name)s, %(leg)s, %(check_run_id)s, %(url)s, %(artifact_url)s,
        %(head_sha)s, %(pr_number)s, %(status)s, %(conclusion)s, %(bucket)s, %(flags)s, %(passed)s, %(failed)s,
        %(skipped)s, %(total)s, %(started_at)s, %(reported_completed_at)s, %(now)s, %(start_seen_at)s,
        %(completed_at)s, %(provenance)s, '', '', '', %(look_up_at)s, 0, 0)
    ON CONFLICT (repository_id, md5(delivery_id), run_id, run_attempt, md5(workflow), md5(job_name), md5(leg))
    DO NOTHING {_RETURNING}
), callback AS ({_KEEP.format(job="job.id", source="FROM job")}), {_AFTER}
SELECT id FROM job
"""

COMPLETE = f"""
WITH job AS (
    UPDATE relay_job SET status = %(status)s, conclusion = %(conclusion)s, bucket = %(bucket)s,
        passed = COALESCE(%(passed)s, passed), failed = COALESCE(%(failed)s, failed),
        skipped = COALESCE(%(skipped)s, skipped), total = COALESCE(%(total)s, total),
        reported_started_at = COALESCE(reported_started_at, %(started_at)s),
        reported_completed_at = COALESCE(%(reported_completed_at)s, reported_completed_at),
        completed_at = %(completed_at)s,
        url = COALESCE(NULLIF(%(url)s, ''), url),
        artifact_url = COALESCE(NULLIF(%(artifact_url)s, ''), artifact_url), flags = %(flags)s,
        check_run_id = COALESCE(NULLIF(%(check_run_id)s, ''), check_run_id),
        joined_leg = COALESCE(%(joined_leg)s, joined_leg), provenance = %(provenance)s,
        github_said = '', look_up_at = %(look_up_at)s, lookups = 0, revision = revision + 1
    WHERE id = %(job_id)s AND revision = %(revision)s {_RETURNING}
), callback AS ({_KEEP.format(job="job.id", source="FROM job")}), {_AFTER}
SELECT id FROM job
"""

FILL_START = f"""
WITH job AS (
    UPDATE relay_job SET reported_started_at = COALESCE(reported_started_at, %(started_at)s),
        start_seen_at = %(now)s, flags = %(flags)s, provenance = %(provenance)s, revision = revision + 1
    WHERE id = %(job_id)s AND revision = %(revision)s {_RETURNING}
), callback AS ({_KEEP.format(job="job.id", source="FROM job")}), {_AFTER}
SELECT id FROM job
"""

KEEP = _KEEP.format(job="%(job_id)s", source="")
_ONE_BODY_A_TOKEN = "relay_callback_token_once"  # noqa: S105  a constraint's name


@dataclass(frozen=True)
class Used:
    """The callback that a token was used for: its body, and what it was answered."""

    body_digest: str
    answer: Answer


@dataclass(frozen=True)
class Known:
    """What PostgreSQL knows about a callback before it is applied. `dispatch_id` None: not for the repository;
    `has_left`: it was sent, or at least tried.

    `used` is None for a token that was not used yet. `leg` is that of the job the callback means, which differs from
    the callback's own where it joins another's.
    """

    event: str | None
    head_sha: str
    pr_number: int | None
    dispatch_id: int | None
    has_left: bool
    used: Used | None
    job_id: int | None
    job_public_id: UUID | None
    revision: int
    flags: frozenset[str]
    leg: str | None
    provenance: str
    state: State


class Voucher(Protocol):
    """Who stands behind a callback. `token_id` None: no token of its own came with it."""

    @property
    def token_id(self) -> UUID | None: ...

    @property
    def claims(self) -> dict[str, str]: ...


@dataclass(frozen=True)
class Word:
    """A callback that came by another's word, without the token of its sender: a relay's, or a file's."""

    claims: dict[str, str]
    token_id: None = None


class Raced(Exception):
    """Another callback was faster: nothing was written, and the caller must read again."""


def read(repository_id: int, callback: Callback, identity: Voucher) -> Known:
    """One round trip: delivery, dispatch, token and job of this callback, where they exist."""
    values = _key(repository_id, callback) | {
        "token_id": identity.token_id,
        "is_leg_declared": callback.is_leg_declared,
        "is_end": callback.report.status is JobStatus.COMPLETED,
    }
    with prepared() as cursor:
        cursor.execute(READ, values)
        row = cursor.fetchone()
    event, head_sha, pr_number, dispatch_id, has_left, used_digest, used_answer, *of_job = row
    job_id, job_public_id, revision, status, conclusion, *rest = of_job
    passed, failed, skipped, total, started_at, start_seen, flags, leg, provenance = rest
    state = State()
    if job_id is not None:
        counts = Counts(passed, failed, skipped, total)
        state = State(JobStatus(status), conclusion, counts, started_at, start_seen, Flag.INFERRED in flags)
    return Known(
        event,
        head_sha or "",
        pr_number,
        dispatch_id,
        bool(has_left),
        Used(used_digest, Answer(used_answer)) if used_digest else None,
        job_id,
        job_public_id,
        revision or 0,
        frozenset(flags or ()),
        leg,
        provenance or "",
        state,
    )


def write(
    repository_id: int,
    callback: Callback,
    known: Known,
    row: Row,
    *,
    bucket: Bucket,
    provenance: str,
    identity: Voucher,
    has_checks: bool,
    is_looked_up: bool = True,
    now: datetime.datetime,
) -> UUID:
    """Apply one cell of the matrix and keep the callback. Returns the job's public id. Raises Raced.

    `is_looked_up`: GitHub is asked about an end; of a history it has forgotten most, and is asked nothing.
    """
    report, is_new = callback.report, known.job_id is None
    is_end = report.status is JobStatus.COMPLETED
    job_public_id = known.job_public_id or public_id()
    values = _key(repository_id, callback) | {
        "public_id": job_public_id,
        "has_checks": has_checks,
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
        "provenance": provenance,
        "joined_leg": callback.leg if Flag.JOINED in row.add else None,
        "look_up_at": now + FIRST_LOOK_UP if is_end and is_looked_up else None,
    }
    values |= _kept(callback, row.answer, identity, now)
    if row.answer is Answer.CONFLICT:
        _execute(KEEP, values)
        return job_public_id
    statement = INSERT if is_new else FILL_START if row.answer is Answer.LATE else COMPLETE
    if not _execute(statement, values):
        raise Raced
    return job_public_id


def keep_private(repository_id: int, callback: Callback, *, identity: Voucher, now: datetime.datetime) -> None:
    """Keep a callback of a repository whose results are not public. The same body again changes nothing. Raises
    Raced."""
    values = {"repository_id": repository_id, "job_id": None} | _kept(callback, Answer.IGNORED, identity, now)
    _execute(KEEP, values)


def _execute(statement: str, values: dict[str, Any]) -> bool:
    try:
        with prepared() as cursor:
            cursor.execute(statement, values)
            return cursor.rowcount == 1
    except IntegrityError as error:
        if _ONE_BODY_A_TOKEN in str(error):
            raise Raced from None
        raise


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


def _kept(callback: Callback, answer: Answer, identity: Voucher, now: datetime.datetime) -> dict[str, Any]:
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
        "claims": json.dumps(identity.claims),
        "token_id": identity.token_id,
        "body_digest": callback.body_digest,
    }
