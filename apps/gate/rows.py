"""What the hub holds about some commits, read whole: what the gate's facts are made of.

A bounded number of queries, however many commits, repositories and tests. What there are thousands of is read as narrow
tuples.
"""

import datetime
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from django.db.models import BigIntegerField, BooleanField, CharField, Func, Q
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from apps.core.lookups import any_of
from apps.gate.bases import BaseReports
from apps.gate.models import BreakerTrip, Override
from apps.platforms.models import LevelInterval, Membership, Repository, Transfer
from apps.platforms.policy import MATURE, PUBLIC_FROM, STABLE
from apps.relay.counted import cancelled_by_push_sql
from apps.relay.enums import Bucket, DeliveryState, JobStatus
from apps.relay.graph_selectors import places_known
from apps.relay.models import DeclaredOutcome, Delivery, Dispatch, Job, Omission
from apps.relay.policy import PULL_REQUEST, PUSH, is_answered
from apps.results.enums import ReportState
from apps.results.exclusions import RED
from apps.results.models import Exclusion, Finding, Report, Upload
from apps.results.report_selectors import PUBLIC

_KEY = BigIntegerField()
_FANNED_OUT = (DeliveryState.FANNED_OUT, DeliveryState.RECEIVED)


@dataclass(frozen=True)
class Question:
    """Which commit, as the head of which pull request (None: as a commit of main), as of when."""

    sha: str
    pr_number: int | None
    at: datetime.datetime


class DeliveryRow(NamedTuple):
    """Of a delivery what the gate asks for; so the two below."""

    pk: int
    event: str
    action: str
    head_sha: str
    pr_number: int | None
    received_at: datetime.datetime


class DispatchRow(NamedTuple):
    delivery_id: int
    repository_id: int
    sent_at: datetime.datetime | None


class JobRow(NamedTuple):
    """`is_by_push`: whether a newer push is why it was cancelled."""

    pk: int
    public_id: UUID
    repository_id: int
    dispatch_id: int | None
    run_id: str
    run_attempt: int
    workflow: str
    job_name: str
    head_sha: str
    pr_number: int | None
    status: str
    conclusion: str
    bucket: str
    flags: list[str]
    passed: int | None
    failed: int | None
    skipped: int | None
    total: int | None
    first_seen_at: datetime.datetime
    completed_at: datetime.datetime | None
    judged_at: datetime.datetime | None
    is_by_push: bool


class Said(NamedTuple):
    """A result of a platform: where it was told, and when. No repository: upstream's own."""

    platform: int
    repository: int | None
    variant: str
    received_at: datetime.datetime
    parsed_at: datetime.datetime | None


@dataclass
class Rows:
    """Everything that the questions are answered from, by what they ask for: about these commits any question is then
    answered in memory, as of any moment up to the latest that was asked about.

    `as_blocking`: repositories (primary keys) that are taken as if they had blocked. `only`: no other repository than
    these. `base_commits`: how far back from a merge base a tested commit is looked for.
    """

    questions: Sequence[Question]
    base_commits: int
    as_blocking: frozenset[int]
    only: frozenset[int] | None
    latest: datetime.datetime = field(init=False)
    shas: set[str] = field(init=False)
    repositories: dict[int, Repository] = field(init=False)

    def __post_init__(self) -> None:
        self.latest = max(question.at for question in self.questions)
        self.shas = {question.sha for question in self.questions}
        self._load_levels()
        self._load_deliveries()
        self._load_jobs()
        self._load_reports()
        self._load_decisions()

    def _load_levels(self) -> None:
        found = LevelInterval.objects.filter(
            Q(level__gte=PUBLIC_FROM) | Q(repository__in=self.as_blocking),
            repository__is_probe=False,
            started_at__lte=self.latest,
        )
        if self.only is not None:
            found = found.filter(repository__in=self.only)
        self.intervals: dict[int, list[LevelInterval]] = defaultdict(list)
        for interval in found.select_related("repository"):
            self.intervals[interval.repository_id].append(interval)
        self.repositories = {pk: intervals[0].repository for pk, intervals in self.intervals.items()}
        self.ever_blocking = {
            pk
            for pk, intervals in self.intervals.items()
            if pk in self.as_blocking or any(interval.level >= MATURE for interval in intervals)
        }

    def _load_deliveries(self) -> None:
        found = Delivery.objects.filter(
            self._of_commits(), received_at__lte=self.latest, state__in=_FANNED_OUT, event__in=(PULL_REQUEST, PUSH)
        )
        self.deliveries: dict[str, list[DeliveryRow]] = defaultdict(list)
        for delivery in map(DeliveryRow._make, found.order_by("pk").values_list(*DeliveryRow._fields)):
            if is_answered(delivery.event, delivery.action):
                self.deliveries[delivery.head_sha].append(delivery)
        keys = [one.pk for them in self.deliveries.values() for one in them]
        told = any_of("delivery", keys, _KEY)
        self.dispatches: dict[tuple[int, int], list[DispatchRow]] = defaultdict(list)
        sent = Dispatch.objects.filter(told, repository__in=self.repositories).order_by("pk")
        for dispatch in map(DispatchRow._make, sent.values_list(*DispatchRow._fields)):
            self.dispatches[dispatch.delivery_id, dispatch.repository_id].append(dispatch)
        self.omissions: dict[tuple[int, int], list[Omission]] = defaultdict(list)
        for omission in Omission.objects.filter(told, repository__in=self.repositories).order_by("pk"):
            self.omissions[omission.delivery_id, omission.repository_id].append(omission)

    def _load_jobs(self) -> None:
        is_by_push = RawSQL(cancelled_by_push_sql("relay_job"), [], output_field=BooleanField())  # noqa: S611 constant
        found = Job.objects.filter(
            self._of_commits(), repository__in=self.repositories, first_seen_at__lte=self.latest
        ).annotate(is_by_push=is_by_push)
        self.jobs: dict[tuple[str, int], list[JobRow]] = defaultdict(list)
        self.jobs_of: dict[str, list[JobRow]] = defaultdict(list)
        self.job: dict[int, JobRow] = {}
        for job in map(JobRow._make, found.order_by("pk").values_list(*JobRow._fields)):
            self.jobs[job.head_sha, job.repository_id].append(job)
            self.jobs_of[job.head_sha].append(job)
            self.job[job.pk] = job
        self.declared: dict[int, list[DeclaredOutcome]] = defaultdict(list)
        for row in DeclaredOutcome.objects.filter(repository__in=self.ever_blocking):
            self.declared[row.repository_id].append(row)
        # Accepted since: what stands there now was held then.
        self.accepted: dict[int, list[Transfer]] = defaultdict(list)
        for transfer in Transfer.objects.filter(repository__in=self.repositories, state=Transfer.State.ACCEPTED):
            self.accepted[transfer.repository_id].append(transfer)

    def _load_reports(self) -> None:
        failing = [
            job.pk
            for (_, repository), jobs in self.jobs.items()
            if repository in self.ever_blocking
            for job in jobs
            if job.status == JobStatus.COMPLETED and Bucket.FAILURE in (job.bucket, job.conclusion)
        ]
        self.uploads: dict[int, list[Upload]] = defaultdict(list)
        uploads = Upload.objects.filter(any_of("job", failing, _KEY)).select_related("report__repository")
        for upload in uploads.order_by("pk"):
            self.uploads[upload.job_id or 0].append(upload)
        reports = {one.report_id: one.report for them in self.uploads.values() for one in them}
        self.findings: dict[int, list[Finding]] = defaultdict(list)
        red = Finding.objects.filter(any_of("report", reports, _KEY), outcome__in=RED)
        for finding in red.select_related("test").defer("message", "trace").order_by("pk"):
            self.findings[finding.report_id].append(finding)
        self.tests = {one.test_id for them in self.findings.values() for one in them}
        self._load_elsewhere()
        platforms = {report.repository.platform_id for report in reports.values() if report.repository}
        platforms |= {one.platform for them in self.elsewhere.values() for one in them}
        self.organisations: dict[int, set[int]] = defaultdict(set)
        members = Membership.objects.filter(platform__in=platforms, user__organisation__isnull=False)
        for platform, organisation in members.values_list("platform_id", "user__organisation_id"):
            self.organisations[platform].add(organisation or 0)
        # Its uploads are gone: the run alone leads to what was taken down.
        removed = Report.objects.filter(self._of_commits(), state=ReportState.REMOVED, removal__isnull=False)
        wanted = ("head_sha", "repository_id", "run_id", "received_at", "removal__removed_at")
        self.removed = [
            (sha, repository, run, received_at, removed_at)
            for sha, repository, run, received_at, removed_at in removed.order_by().values_list(*wanted)
        ]
        self.exclusions: dict[tuple[int, str], list[Exclusion]] = defaultdict(list)
        for exclusion in Exclusion.objects.filter(platform__in=platforms, from_at__lte=self.latest).order_by("pk"):
            self.exclusions[exclusion.platform_id, exclusion.variant].append(exclusion)
        self.places = places_known(self.shas) if self.tests or len(self.questions) == 1 else {}
        self.bases = BaseReports.load(
            checks={(job.repository_id, job.workflow, job.job_name) for job in map(self.job.__getitem__, self.uploads)},
            places={place for place, _ in self.places.values()},
            tests=self.tests,
            others={one.repository for them in self.elsewhere.values() for one in them if one.repository},
            base_commits=self.base_commits,
        )

    def _load_elsewhere(self) -> None:
        """The same tests' failures in the reports of the same commits, of platforms whose word counts: those in the
        tree, and those whose repository was at L3 or above."""
        self.elsewhere: dict[tuple[str, int, bytes], list[Said]] = defaultdict(list)
        if not self.tests:
            return
        counting = Q(source__isnull=False) | Q(level__gte=STABLE)
        found = Finding.objects.filter(
            any_of("test", self.tests, _KEY),
            report__in=Report.objects.filter(PUBLIC, counting, self._of_commits(), state=ReportState.READY),
            outcome__in=RED,
        ).annotate(platform=Coalesce("report__repository__platform_id", "report__source__platform_id"))
        wanted = ("report__repository_id", "report__variant", "report__received_at", "report__parsed_at")
        for sha, test, fingerprint, *row in found.order_by().values_list(
            "report__head_sha", "test_id", "fingerprint", "platform", *wanted
        ):
            self.elsewhere[sha, test, bytes(fingerprint)].append(Said._make(row))

    def _load_decisions(self) -> None:
        numbers = {question.pr_number for question in self.questions if question.pr_number is not None}
        self.overrides: dict[int, list[Override]] = defaultdict(list)
        overrides = Override.objects.filter(any_of("pr_number", numbers, _KEY), from_at__lte=self.latest)
        for override in overrides.order_by("pk"):
            self.overrides[override.pr_number].append(override)
        self.trips: dict[int, list[BreakerTrip]] = defaultdict(list)
        for trip in BreakerTrip.objects.filter(repository__in=self.ever_blocking, opened_at__lte=self.latest):
            self.trips[trip.repository_id].append(trip)

    def _of_commits(self) -> Func | Q:
        return any_of("head_sha", self.shas, CharField(max_length=40))
