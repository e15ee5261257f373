"""Uploads and the jobs that they are of: found by the job's identity, whichever of the two comes first."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from apps.relay.corroboration import judge_by_tests, mark_red_apart
from apps.relay.enums import JobStatus
from apps.relay.models import Job
from apps.results.enums import ReportFlag, ReportState, TestsVerdict
from apps.results.models import Report, Upload
from apps.results.report_selectors import is_red_apart, not_held

# How long an upload waits for the callback of its job: as long as a job's state is kept.
LINKED_WITHIN = datetime.timedelta(days=3)


class OfJob(Protocol):
    """What says which job something is of."""

    @property
    def run_id(self) -> str: ...
    @property
    def run_attempt(self) -> int: ...
    @property
    def workflow(self) -> str: ...
    @property
    def job_name(self) -> str: ...
    @property
    def leg(self) -> str: ...
    @property
    def check_run_id(self) -> str: ...
    @property
    def delivery_id(self) -> str: ...


def job_of(repository_id: int | None, of: OfJob, *, since: datetime.datetime) -> Job | None:
    """The one job of this identity, first seen since then. What was left out is not asked about, on either side: of a
    job whose callbacks name no check run an upload may. Where that fits several, none is meant."""
    if repository_id is None:
        return None
    found = Job.objects.filter(
        repository=repository_id,
        first_seen_at__gte=since,
        run_id=of.run_id,
        run_attempt=of.run_attempt,
        job_name=of.job_name,
    )
    if of.delivery_id:
        found = found.filter(delivery_id=of.delivery_id)
    if of.workflow:
        found = found.filter(workflow=of.workflow)
    if of.leg:
        found = found.filter(leg=of.leg)
    elif of.check_run_id:
        named = Q(leg=of.check_run_id) | Q(check_run_id=of.check_run_id) | Q(joined_leg=of.check_run_id)
        found = found.filter(named | Q(leg="", check_run_id=""))
    jobs = list(found.order_by("pk")[:2])
    return jobs[0] if len(jobs) == 1 else None


def repositories_with_uploads(repository_ids: Iterable[int], *, now: datetime.datetime) -> list[int]:
    """Those of these repositories (primary keys) that uploaded something in the last days."""
    recent = Upload.objects.filter(report__repository__in=list(repository_ids), received_at__gte=now - LINKED_WITHIN)
    return sorted({pk for pk in recent.values_list("report__repository_id", flat=True) if pk is not None})


def settle_jobs(*, repository_ids: Iterable[int], now: datetime.datetime) -> int:
    """Link uploads of the last days to jobs that have come meanwhile, and tell each job what its tests say, once both
    have ended. What is held says nothing before its owner is accepted. Returns how many uploads were touched.
    Idempotent."""
    since = now - LINKED_WITHIN
    of_these = Upload.objects.filter(report__repository__in=list(repository_ids), received_at__gte=since)
    recent = of_these.filter(not_held("report__"))
    # In one query, since nightlies without callbacks stay unlinked for good.
    named = Job.objects.filter(
        repository=OuterRef("report__repository"),
        first_seen_at__gte=since - LINKED_WITHIN,
        run_id=OuterRef("run_id"),
        run_attempt=OuterRef("run_attempt"),
        job_name=OuterRef("job_name"),
    )
    unlinked = recent.filter(Exists(named), job=None).select_related("report")
    linked = sum(_link(upload) for upload in unlinked.order_by("pk"))
    is_unjudged = Q(judged_revision=None) | ~Q(judged_revision=F("job__revision"))
    unjudged = recent.filter(is_unjudged, job__status=JobStatus.COMPLETED, tests__isnull=False)
    jobs = Job.objects.filter(uploads__in=unjudged).distinct().order_by("pk")
    return linked + sum(_judge(job, now) for job in jobs)


@dataclass(frozen=True)
class _Said:
    """What an upload said about its job. The delivery is its report's."""

    run_id: str
    run_attempt: int
    workflow: str
    job_name: str
    leg: str
    check_run_id: str
    delivery_id: str


def _link(upload: Upload) -> bool:
    said = {name: getattr(upload, name) for name in _Said.__annotations__ if name != "delivery_id"}
    of = _Said(**said, delivery_id=upload.report.delivery_id)
    job = job_of(upload.report.repository_id, of, since=upload.received_at - LINKED_WITHIN)
    return job is not None and Upload.objects.filter(pk=upload.pk, job=None).update(job=job) == 1


@transaction.atomic
def _judge(job: Job, now: datetime.datetime) -> int:
    """All of a job's uploads together say one thing: a job may bring one for each variant."""
    counting = Upload.objects.filter(not_held("report__"), job=job, tests__isnull=False)
    uploads = list(counting.exclude(report__state=ReportState.REMOVED))
    tests, failing = (sum(getattr(upload, name) for upload in uploads) for name in ("tests", "failing"))
    is_whole = all(upload.is_whole for upload in uploads)
    agree = agreement(job.conclusion, tests=tests, failing=failing, is_whole=is_whole)
    if not judge_by_tests(job=job, agree=agree, now=now):
        return 0
    job.refresh_from_db(fields=["revision", "flags"])
    is_apart = bool(agree and job.conclusion == "failure") and _is_red_apart(uploads)
    if not mark_red_apart(job=job, is_apart=is_apart, now=now):
        return 0
    verdict = {True: TestsVerdict.CORROBORATED.value, False: TestsVerdict.CONTRADICTED.value, None: ""}[agree]
    job.refresh_from_db(fields=["revision"])
    Upload.objects.filter(pk__in=[upload.pk for upload in uploads]).update(
        verdict=verdict, judged_revision=job.revision
    )
    _flag_reports(uploads, is_contradicted=agree is False, now=now)
    return len(uploads)


def _is_red_apart(uploads: Iterable[Upload]) -> bool:
    """Whether all that failed in the reports of these uploads was listed apart when they came. Of one that several jobs
    share nobody knows whose each failure is: all of it must be."""
    reports = Report.objects.filter(pk__in={upload.report_id for upload in uploads})
    related = reports.select_related("repository__platform", "source__platform")
    return all(is_red_apart(report) for report in related.prefetch_related("uploads"))


def _flag_reports(uploads: Iterable[Upload], *, is_contradicted: bool, now: datetime.datetime) -> None:
    """A report says it too, if one of its jobs is contradicted."""
    word = ReportFlag.CONTRADICTS_JOB.value
    pks = {upload.report_id for upload in uploads}
    for report in Report.objects.select_for_update().filter(pk__in=pks).order_by("pk"):
        others = report.uploads.filter(verdict=TestsVerdict.CONTRADICTED)
        flags = {*report.flags} - {word} | ({word} if is_contradicted or others.exists() else set())
        if flags != {*report.flags}:
            Report.objects.filter(pk=report.pk).update(flags=sorted(flags), changed_at=now)


def agreement(conclusion: str, *, tests: int, failing: int, is_whole: bool) -> bool | None:
    """Whether tests agree with their job's conclusion: a success without tests, or with failing ones, is contradicted;
    a failure with failing ones is corroborated; of a failure without, of what could
    not be read to its end, and of all else they say nothing."""
    if conclusion == "success":
        if not tests or failing:
            return False
        return True if is_whole else None
    if conclusion == "failure" and failing:
        return True
    return None
