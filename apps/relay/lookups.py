"""Verbs that ask GitHub about runs in the background: is a conclusion true, what became of a silent job.

A job's due time (`look_up_at`) is its place in the queue, written by the callback's own statement. A run is asked for
once for all of its jobs that are due. GitHub may fail: then the due time moves, and the beat comes back.
"""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models import F, QuerySet, Value
from django.db.models.functions import MD5

from apps.core.github import GitHubRefused, GitHubUnavailable, RunJob, client
from apps.core.text import storable
from apps.core.wakeups import wake
from apps.platforms.models import Repository
from apps.platforms.policy import CHECKS_FROM
from apps.relay import verification
from apps.relay.enums import Bucket, Flag, JobStatus, Verdict
from apps.relay.models import HubOutage, Job
from apps.relay.policy import FIRST_LOOK_UP, LIMIT_MAX_SECONDS, LOOKUPS_MAX, SILENT_LIMIT_SECONDS
from apps.relay.topics import JOB_CHANGED, JOB_FOR_CHECKS
from apps.relay.verification import SAID_MAX, Finding

# How many runs one beat takes up; the next one comes soon.
RUNS_AT_ONCE = 200
# A run that was taken up and not finished by then has lost its worker.
TAKEN_FOR = datetime.timedelta(minutes=5)


@dataclass(frozen=True)
class RunKey:
    """One attempt of one run of a repository (primary key)."""

    repository_id: int
    run_id: str
    run_attempt: int


def _jobs_of(run: RunKey) -> QuerySet[Job]:
    return Job.objects.filter(repository_id=run.repository_id, run_id=run.run_id, run_attempt=run.run_attempt)


def due_runs(*, now: datetime.datetime) -> list[RunKey]:
    """Runs with ended jobs that GitHub is to be asked about, the longest due first."""
    due = Job.objects.filter(look_up_at__lte=now).order_by("look_up_at")[: RUNS_AT_ONCE * 10]
    runs = dict.fromkeys(RunKey(*row) for row in due.values_list("repository_id", "run_id", "run_attempt"))
    return list(runs)[:RUNS_AT_ONCE]


def look_up_run(*, run: RunKey, now: datetime.datetime) -> int:
    """Ask GitHub for a run's jobs, and judge the reported conclusions that are due. Returns how many were judged.

    A job that GitHub has not ended yet, or could not be asked about, is due again after twice as long, LOOKUPS_MAX
    times in all; then it is unverifiable. Idempotent: who comes second finds nothing due.
    """
    with transaction.atomic():
        due = _jobs_of(run).filter(status=JobStatus.COMPLETED, look_up_at__lte=now)
        jobs = list(due.select_for_update(skip_locked=True).order_by("pk"))
        Job.objects.filter(pk__in=[job.pk for job in jobs]).update(look_up_at=now + TAKEN_FOR, lookups=F("lookups") + 1)
    if not jobs:
        return 0
    records = _records_of(run)
    return sum(_judge(job, _finding(job, records), now) for job in jobs)


def _records_of(run: RunKey) -> list[RunJob] | Finding:
    """A run's jobs at GitHub, or what is to be said of all of them when it does not tell."""
    full_name = Repository.objects.values_list("full_name", flat=True).get(pk=run.repository_id)
    try:
        return client().jobs_of_run(full_name, run_id=run.run_id, run_attempt=run.run_attempt)
    except GitHubUnavailable as error:
        return Finding(None, str(error))
    except GitHubRefused as error:
        return Finding(Verdict.UNVERIFIABLE, str(error))


def _finding(job: Job, records: list[RunJob] | Finding) -> Finding:
    if isinstance(records, Finding):
        return records
    return verification.finding_of(
        records, conclusion=job.conclusion, check_run_id=job.check_run_id, job_name=job.job_name
    )


def _judge(job: Job, finding: Finding, now: datetime.datetime) -> bool:
    """Write a finding, unless the job has changed meanwhile: then it stays due. Returns whether it was judged."""
    verdict, lookups, said = finding.verdict, job.lookups + 1, storable(finding.said, SAID_MAX)
    if verdict is None and lookups >= LOOKUPS_MAX:
        verdict = Verdict.UNVERIFIABLE
    unchanged = Job.objects.filter(pk=job.pk, revision=job.revision)
    if verdict is None:
        unchanged.update(look_up_at=now + FIRST_LOOK_UP * 2**lookups, github_said=said)
        return False
    bucket = Bucket.CONTRADICTED if verdict is Verdict.CONTRADICTED else job.bucket
    with transaction.atomic():
        changed = unchanged.update(
            verdict=verdict,
            github_said=said,
            bucket=bucket,
            look_up_at=None,
            judged_at=now,
            revision=F("revision") + 1,
        )
        if changed and bucket != job.bucket:
            tell_of(job, now)
    return changed == 1


# --- silent jobs ------------------------------------------------------------------------------------------------

_SILENT = """
SELECT j.id, j.repository_id, j.run_id, j.run_attempt FROM relay_job j
LEFT JOIN relay_timelimit own ON own.repository_id = j.repository_id AND own.job_name = j.job_name
LEFT JOIN relay_timelimit every ON every.repository_id = j.repository_id AND every.job_name = ''
WHERE j.status = 'in_progress'
    AND j.first_seen_at + make_interval(secs => COALESCE(own.seconds, every.seconds, %(default)s)) < %(now)s
"""
_OLDEST_SILENT = f"{_SILENT} ORDER BY j.first_seen_at LIMIT %(limit)s"
_THAT_SILENT = f"{_SILENT} AND j.id = %(job)s"
_SILENT_AT_ONCE = 2_000
# A job that was in progress during an outage has been ended by then, whatever its limit.
_OUTAGE_LOOKED_AT = 2 * datetime.timedelta(seconds=LIMIT_MAX_SECONDS)


def silent_runs(*, now: datetime.datetime) -> dict[RunKey, list[int]]:
    """Jobs (primary keys) in progress that have been silent past their limit, by run."""
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST_SILENT, {"default": SILENT_LIMIT_SECONDS, "now": now, "limit": _SILENT_AT_ONCE})
        runs: dict[RunKey, list[int]] = {}
        for pk, *key in cursor.fetchall():
            runs.setdefault(RunKey(*key), []).append(pk)
    return runs


def is_silent(job_pk: int, *, now: datetime.datetime) -> bool:
    """Whether a job is in progress and has been silent past its limit."""
    with connection.cursor() as cursor:
        cursor.execute(_THAT_SILENT, {"default": SILENT_LIMIT_SECONDS, "now": now, "job": job_pk})
        return cursor.fetchone() is not None


def close_silent(*, run: RunKey, job_pks: list[int], now: datetime.datetime) -> int:
    """End a run's silent jobs as timed out, flagged as inferred. Returns how many this call ended.

    GitHub is asked for the run once, and what it says stands on the job; the protocol's outcome stays a time-out,
    because the downstream never told. A real answer that comes later replaces it (policy.MATRIX).
    """
    open_jobs = Job.objects.filter(pk__in=job_pks, status=JobStatus.IN_PROGRESS)
    # Whoever counts the lookup up asks; a run whose asker died is closed without an answer.
    asks = open_jobs.filter(lookups=0).update(lookups=1)
    records = _records_of(run) if asks else Finding(None, "GitHub was asked, and the answer was lost")
    return sum(_close(job, _said_of(job, records), now) for job in open_jobs)


def _said_of(job: Job, records: list[RunJob] | Finding) -> str:
    if isinstance(records, Finding):
        return records.said
    record = verification.find(records, check_run_id=job.check_run_id, job_name=job.job_name)
    return record if isinstance(record, str) else verification.state_of(record)


@transaction.atomic
def _close(job: Job, said: str, now: datetime.datetime) -> bool:
    changed = Job.objects.filter(pk=job.pk, revision=job.revision, status=JobStatus.IN_PROGRESS).update(
        status=JobStatus.COMPLETED,
        conclusion="timed_out",
        bucket=Bucket.TIMED_OUT,
        flags=sorted({*job.flags, Flag.INFERRED.value}),
        github_said=storable(said, SAID_MAX),
        completed_at=now,
        judged_at=now,
        revision=F("revision") + 1,
    )
    if changed:
        tell_of(job, now)
    return changed == 1


def excuse(*, now: datetime.datetime) -> int:
    """Flag the ends that were inferred from a silence in which the hub itself was out: the real ones may have been
    lost, so these count in no rate until those come. Outages are found after the fact, hence apart. Returns how many.
    """
    recent = HubOutage.objects.filter(ended_at__gt=now - _OUTAGE_LOOKED_AT)
    return sum(_excuse(job, now) for outage in recent for job in _silent_in(outage))


def _silent_in(outage: HubOutage) -> QuerySet[Job]:
    return Job.objects.filter(
        flags__contains=[Flag.INFERRED],
        first_seen_at__gt=outage.started_at - datetime.timedelta(seconds=LIMIT_MAX_SECONDS),
        first_seen_at__lte=outage.ended_at,
        completed_at__gte=outage.started_at,
    ).exclude(flags__contains=[Flag.UNHEARD])


@transaction.atomic
def _excuse(job: Job, now: datetime.datetime) -> bool:
    changed = Job.objects.filter(pk=job.pk, revision=job.revision).update(
        flags=sorted({*job.flags, Flag.UNHEARD.value}), judged_at=now, revision=F("revision") + 1
    )
    if changed:
        tell_of(job, now)
    return changed == 1


def tell_of(job: Job, now: datetime.datetime) -> None:
    """Wake whoever heeds a job, which was read as it is here and has just gone one revision further."""
    wake_days_of(job, now=now)
    if job.pr_number is not None and job.repository.level >= CHECKS_FROM:
        wake(JOB_FOR_CHECKS, [f"{job.pk}:{job.revision + 1}"], now=now)


def wake_days_of(job: Job, *, now: datetime.datetime) -> None:
    """Have the days counted anew that a change of this job touches: those of every job of its run."""
    wake(JOB_CHANGED, sorted(_days_of(job)), now=now)


def _days_of(job: Job) -> Iterator[str]:
    of_run = Job.objects.alias(delivery=MD5("delivery_id")).filter(  # as the unique index has it
        repository=job.repository_id, delivery=MD5(Value(job.delivery_id)), run_id=job.run_id
    )
    for day in {seen.astimezone(datetime.UTC).date() for seen in of_run.values_list("first_seen_at", flat=True)}:
        yield f"{job.repository_id}:{day}"
