"""What a job's uploaded tests say about its conclusion, written on the job: a room above counts them."""

import datetime

from django.db import transaction

from apps.relay.enums import Bucket, Flag, Verdict
from apps.relay.lookups import tell_of, wake_days_of
from apps.relay.models import Job
from apps.relay.policy import Counts, bucket_of

_OURS = {Flag.CORROBORATED.value, Flag.TESTS_CONTRADICT.value}


@transaction.atomic
def judge_by_tests(*, job: Job, agree: bool | None, now: datetime.datetime) -> bool:
    """Mark an ended job as corroborated by its tests (`agree`), as contradicted, which is never green, or as neither
    (None). What they said before is taken back. Returns False, and writes nothing, where the job has changed since it
    was read: whoever changed it asks again.
    """
    flag = {True: Flag.CORROBORATED, False: Flag.TESTS_CONTRADICT, None: None}[agree]
    flags = sorted({*job.flags} - _OURS | ({flag.value} if flag else set()))
    bucket = _bucket(job, agree)
    if (flags, bucket) == (sorted(job.flags), job.bucket):
        return Job.objects.filter(pk=job.pk, revision=job.revision).exists()
    changed = Job.objects.filter(pk=job.pk, revision=job.revision, status="completed").update(
        flags=flags, bucket=bucket, judged_at=now, revision=job.revision + 1
    )
    if changed and bucket != job.bucket:
        tell_of(job, now)
    return changed == 1


@transaction.atomic
def mark_red_apart(*, job: Job, is_apart: bool, now: datetime.datetime) -> bool:
    """Say of an ended job whether all that failed in its tests is listed apart: its bucket stays, its days are counted
    anew. Returns False, and writes nothing, where the job has changed since it was read."""
    if is_apart == (Flag.RED_APART in job.flags):
        return Job.objects.filter(pk=job.pk, revision=job.revision).exists()
    changed = Job.objects.filter(pk=job.pk, revision=job.revision, status="completed").update(
        flags=sorted({*job.flags} ^ {Flag.RED_APART.value}), judged_at=now, revision=job.revision + 1
    )
    if changed:
        wake_days_of(job, now=now)
    return changed == 1


def _bucket(job: Job, agree: bool | None) -> str:
    if agree is False or job.verdict == Verdict.CONTRADICTED:
        return Bucket.CONTRADICTED.value
    if Flag.TESTS_CONTRADICT in job.flags:
        return bucket_of(job.conclusion, Counts(job.passed, job.failed, job.skipped, job.total)).value
    return job.bucket
