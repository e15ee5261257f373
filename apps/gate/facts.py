"""The rows of one commit, or of many, as they stood at a moment → the facts that the gate decides by.

A bounded number of queries, however many commits, repositories and tests. What has been overwritten since the moment,
and so is not known as it was, is `unknown`: never as if it had passed.
"""

import datetime
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from django.db import connection
from django.urls import reverse

from apps.gate.enums import BaseState, RowKind
from apps.gate.policy import INFORMATIONAL, UNEXPECTED, UNHEARD, UNKNOWN, Breaker, Facts, JobFact, Part, RedTest, Row
from apps.gate.policy import Override as OverrideFact
from apps.gate.rows import DeliveryRow, JobRow, Question, Rows, Said
from apps.platforms.models import Repository, Transfer
from apps.platforms.policy import MATURE
from apps.relay.enums import Bucket, Declared, Flag
from apps.relay.graph_selectors import LOOKED_BACK
from apps.relay.models import DeclaredOutcome
from apps.relay.policy import PUSH, Counts, bucket_of
from apps.results.enums import ReportFlag, ReportState
from apps.results.exclusions import hits
from apps.results.models import Exclusion, Finding, Report, Test


def facts_of(
    questions: Sequence[Question],
    *,
    base_commits: int,
    as_blocking: Collection[int] = (),
    only: Collection[int] | None = None,
) -> list[Facts | None]:
    """The facts of each question, in their order; None for a commit that the hub had not been told of by then.

    `base_commits`: how far back from the merge base a tested commit is looked for. `as_blocking`: repositories (primary
    keys) that are taken as if they had blocked. `only`: no other repository than these.
    """
    if not questions:
        return []
    rows = Rows(questions, base_commits, frozenset(as_blocking), None if only is None else frozenset(only))
    reading = Reading(rows)
    return [reading.facts(question) for question in questions]


def _holds(row: Any, at: datetime.datetime, start: str, end: str) -> bool:
    ended = getattr(row, end)
    return getattr(row, start) <= at and (ended is None or ended > at)


@dataclass
class Reading:
    """Of the rows of some commits, what they say at a moment."""

    rows: Rows
    base_rows: dict[str, Row] = field(default_factory=dict)
    excused: dict[tuple[int, str, datetime.datetime, int], dict[int, Exclusion]] = field(default_factory=dict)

    def quarantined_later(self, job: int, until: datetime.datetime) -> dict[str, Row]:
        """Of a failed job's (primary key) red tests those that a list names which came into force after the report and
        by `until`: by the test's page the list's row."""
        found: dict[str, Row] = {}
        for upload in self.rows.uploads[job]:
            report = upload.report
            assert report.repository is not None, "reports of jobs are a repository's"
            lists = self.rows.exclusions[report.repository.platform_id, report.variant]
            later = [one for one in lists if report.received_at < one.from_at <= until]
            for test, exclusion in hits(later, [finding.test for finding in self.rows.findings[report.pk]]).items():
                found[_test_url(test)] = Row(RowKind.QUARANTINE, exclusion.reason, exclusion.url)
        return found

    # --- one question -------------------------------------------------------------------------------------------

    def facts(self, question: Question) -> Facts | None:
        """The facts of a commit; None where the hub had not been told of it by then."""
        asked_at = self._asked_at(question, self.rows.jobs_of[question.sha])
        if asked_at is None:
            return None
        deliveries = self._deliveries(question)
        parts = []
        for pk, repository in sorted(self.rows.repositories.items(), key=lambda item: item[1].full_name):
            part = self._part(question, repository, deliveries, asked_at)
            if part is not None:
                parts.append((pk, part))
        if len(self.rows.questions) == 1:
            parts = self._with_nearest(question, parts)
        return Facts(question.sha, question.pr_number, tuple(part for _, part in parts))

    def part(self, question: Question, repository: Repository) -> Part | None:
        """One repository's part of a commit; None where the hub had been told of the commit by then neither by
        upstream nor by the repository, or the repository has no part in it."""
        asked_at = self._asked_at(question, self.rows.jobs[question.sha, repository.pk])
        return None if asked_at is None else self._part(question, repository, self._deliveries(question), asked_at)

    def _deliveries(self, question: Question) -> list[DeliveryRow]:
        return [one for one in self.rows.deliveries[question.sha] if _is_about(one, question)]

    def _asked_at(self, question: Question, jobs: Iterable[JobRow]) -> datetime.datetime | None:
        """When the hub first heard of the commit: from upstream, else by one of these jobs, which another relay
        dispatched. None where that was later."""
        told = [one.received_at for one in self._deliveries(question)]
        seen = [job.first_seen_at for job in jobs if _is_of(job, question)]
        return min([*told, *seen], default=None)

    def _part(
        self, question: Question, repository: Repository, deliveries: list[DeliveryRow], asked_at: datetime.datetime
    ) -> Part | None:
        pk, at = repository.pk, question.at
        level = next((one.level for one in self.rows.intervals[pk] if _holds(one, at, "started_at", "ended_at")), None)
        blocks = pk in self.rows.as_blocking or (level is not None and level >= MATURE)
        if level is None and not blocks:
            return None
        sent = [one for delivery in deliveries for one in self.rows.dispatches[delivery.pk, pk]]
        jobs = [job for job in self.rows.jobs[question.sha, pk] if _is_of(job, question)]
        if not sent and not jobs and not blocks:
            return None
        omitted = [one for delivery in deliveries for one in self.rows.omissions[delivery.pk, pk]]
        sent_at = min((one.sent_at for one in sent if one.sent_at and one.sent_at <= at), default=None)
        accepted = self.rows.accepted[pk]
        admitted = [job for job in jobs if not _is_held(job, accepted, at)]
        return Part(
            repository=repository.full_name,
            level=MATURE if blocks else level or 0,
            blocks=blocks,
            asked_at=asked_at,
            sent_at=sent_at,
            left_out=omitted[-1].sentence if omitted and not sent and not jobs else "",
            jobs=tuple(self._job(job, question, blocks=blocks) for job in admitted if not _went_by_push(job, at)),
            held=len(jobs) - len(admitted),
            override=self._override(question, pk) if blocks else None,
            breaker=self._breaker(pk, at) if blocks else None,
        )

    def _override(self, question: Question, repository: int) -> OverrideFact | None:
        """The one that holds longest of those that cover the part."""
        covering = [
            one
            for one in self.rows.overrides[question.pr_number or 0]
            if one.repository_id in (None, repository)
            and one.sha in ("", question.sha)
            and one.from_at <= question.at < (one.withdrawn_at or one.until)
        ]
        if not covering:
            return None
        chosen = max(covering, key=lambda one: (one.until, one.pk))
        row = Row(RowKind.OVERRIDE, f"override by {chosen.by_label}", _url(RowKind.DECISION, chosen.event_seq))
        return OverrideFact(row, chosen.by_label, chosen.reason, chosen.until)

    def _breaker(self, repository: int, at: datetime.datetime) -> Breaker | None:
        trip = next((one for one in self.rows.trips[repository] if _holds(one, at, "opened_at", "closed_at")), None)
        if trip is None:
            return None
        row = Row(RowKind.DECISION, "breaker opened", _url(RowKind.DECISION, trip.event_seq))
        return Breaker(row, trip.opened_at, trip.why)

    # --- one job ------------------------------------------------------------------------------------------------

    def _job(self, job: JobRow, question: Question, *, blocks: bool) -> JobFact:
        at = question.at
        outcome = self._outcome(job, at)
        told: dict[str, Any] = {}
        if outcome == Bucket.FAILURE and blocks:
            told, is_known = self._tests(job, question)
            outcome = outcome if is_known else UNKNOWN
        return JobFact(
            number=job.pk,
            name=f"{job.workflow} / {job.job_name}" if job.job_name else job.workflow,
            run=job.run_id,
            attempt=job.run_attempt,
            outcome=outcome,
            began_at=job.first_seen_at,
            ended_at=job.completed_at if job.completed_at and job.completed_at <= at else None,
            row=Row(RowKind.JOB, job.job_name or job.workflow, _url(RowKind.JOB, job.public_id)),
            **told,
        )

    def _outcome(self, job: JobRow, at: datetime.datetime) -> str:
        declared = next((one.outcome for one in self.rows.declared[job.repository_id] if _declares(one, job, at)), None)
        if declared == Declared.INFORMATIONAL:
            return INFORMATIONAL
        if job.completed_at is None or job.completed_at > at:
            return Bucket.IN_PROGRESS.value
        if Flag.UNHEARD in job.flags:
            return UNHEARD
        if job.judged_at is not None and job.judged_at > at and job.bucket != _own_bucket(job):
            return UNKNOWN
        if declared is None or job.bucket == Bucket.CONTRADICTED:
            return job.bucket
        return Bucket.SUCCESS.value if job.bucket == declared else UNEXPECTED

    def _tests(self, job: JobRow, question: Question) -> tuple[dict[str, Any], bool]:
        """What a failed job's reports name, as of the moment; and whether that is known."""
        if self._was_taken_down(job, question.at):
            return {}, False
        reports, tests, is_whole, is_named = [], list[RedTest](), True, False
        for upload in self.rows.uploads[job.pk]:
            report = upload.report
            if upload.received_at > question.at or report.is_held:
                continue
            if _was_overwritten(report, question.at):
                return {}, False
            if report.state != ReportState.READY or report.parsed_at is None or report.parsed_at > question.at:
                continue
            reports.append(Row(RowKind.REPORT, f"report, {report.variant}", _url(RowKind.REPORT, report.public_id)))
            is_named = is_named or bool(upload.failing)
            is_whole = is_whole and upload.is_whole and ReportFlag.FINDINGS_CUT not in report.flags
            if upload.failing:
                tests += self._red(job, report, question)
        named = tuple(dict.fromkeys(tests)) if is_named else ()
        return {"reports": tuple(dict.fromkeys(reports)), "tests": named, "is_whole": is_whole}, True

    def _was_taken_down(self, job: JobRow, at: datetime.datetime) -> bool:
        """Whether a report of its run was there at the moment, and was taken down since."""
        key = (job.head_sha, job.repository_id, job.run_id)
        return any(one[:3] == key and one[3] <= at < one[4] for one in self.rows.removed)

    def _red(self, job: JobRow, report: Report, question: Question) -> list[RedTest]:
        assert report.repository is not None, "reports of jobs are a repository's"
        platform = report.repository.platform_id
        findings = self.rows.findings[report.pk]
        tests = [finding.test for finding in findings]
        own = Said(platform, job.repository_id, report.variant, report.received_at, report.parsed_at)
        excused = self._excused(own, report.pk, tests)
        place = self._place(question)
        found = []
        for finding in findings:
            fingerprint = bytes(finding.fingerprint)
            exclusion = excused.get(finding.test_id)
            base = self.rows.bases.state(
                check=(job.repository_id, job.workflow, job.job_name),
                variant=report.variant,
                place=place,
                sha=question.sha,
                test=finding.test_id,
                fingerprint=fingerprint,
                at=question.at,
            )
            others = {
                other.platform
                for other in self.rows.elsewhere[question.sha, finding.test_id, fingerprint]
                if self._counts(other, platform, question)
                and finding.test_id not in self._excused(other, report.pk, tests)
                and not self._had_it_before(other, finding, place, question)
            }
            found.append(
                RedTest(
                    row=Row(RowKind.TEST, _name_of(finding.test), _test_url(finding.test_id)),
                    quarantine=Row(RowKind.QUARANTINE, exclusion.reason, exclusion.url) if exclusion else None,
                    base=base.state,
                    base_row=self._base_row(base.sha),
                    elsewhere=len(others),
                )
            )
        return found

    def _counts(self, other: Said, platform: int, question: Question) -> bool:
        """Whether a failure was known, and is another's: of no organisation that speaks for the platform too."""
        if other.platform == platform or other.parsed_at is None or other.parsed_at > question.at:
            return False
        return not self.rows.organisations[other.platform] & self.rows.organisations[platform]

    def _had_it_before(self, other: Said, finding: Finding, place: int | None, question: Question) -> bool:
        """Whether the other platform had the failure at its base already: then it is not new there."""
        if other.repository is None:
            return False
        base = self.rows.bases.state(
            check=(other.repository, "", ""),
            variant=other.variant,
            place=place,
            sha=question.sha,
            test=finding.test_id,
            fingerprint=bytes(finding.fingerprint),
            at=question.at,
        )
        return base.state is BaseState.SAME

    def _excused(self, said: Said, report: int, tests: Sequence[Test]) -> dict[int, Exclusion]:
        """Of a report's (primary key) red tests those that a list names which was in force for a platform's results
        when one came."""
        key = said.platform, said.variant, said.received_at, report
        if key not in self.excused:
            lists = self.rows.exclusions[said.platform, said.variant]
            in_force = [one for one in lists if _holds(one, said.received_at, "from_at", "until_at")]
            self.excused[key] = hits(in_force, tests)
        return self.excused[key]

    def _place(self, question: Question) -> int | None:
        """Where the commit stands on main, or left it, as far as that was known then."""
        place, known_at = self.rows.places.get(question.sha, (None, question.at))
        return place if known_at <= question.at else None

    def _base_row(self, sha: str) -> Row | None:
        if not sha:
            return None
        if sha not in self.base_rows:
            self.base_rows[sha] = Row(RowKind.COMMIT, f"base {sha[:12]}", _url(RowKind.COMMIT, sha))
        return self.base_rows[sha]

    # --- what never came ----------------------------------------------------------------------------------------

    def _with_nearest(self, question: Question, parts: list[tuple[int, Part]]) -> list[tuple[int, Part]]:
        """Parts that were not heard, with the nearest commit where they were."""
        unheard = [pk for pk, part in parts if part.blocks and not part.jobs and not part.left_out]
        place = self._place(question)
        if not unheard or place is None:
            return parts
        with connection.cursor() as cursor:
            cursor.execute(_NEAREST, [unheard, place, place - LOOKED_BACK, question.at])
            nearest: Mapping[int, str] = dict(cursor.fetchall())
        return [(pk, _heard_at(part, nearest[pk]) if pk in nearest else part) for pk, part in parts]


_NEAREST = f"""
SELECT r.id, c.sha FROM unnest(%s::bigint[]) AS r(id) CROSS JOIN LATERAL (
    SELECT c.sha FROM relay_commit c WHERE c.position <= %s AND c.position > %s AND EXISTS (
        SELECT 1 FROM relay_job j WHERE j.head_sha = c.sha AND j.repository_id = r.id AND j.completed_at <= %s
            AND j.bucket NOT IN ('{Bucket.CANCELLED.value}', '{Bucket.NEUTRAL.value}')
            AND NOT j.flags && ARRAY['{Flag.INFERRED.value}', '{Flag.HELD.value}']::varchar[]
    ) ORDER BY c.position DESC LIMIT 1
) c
"""  # noqa: S608  constants


def _heard_at(part: Part, sha: str) -> Part:
    return replace(part, nearest=Row(RowKind.COMMIT, sha[:12], _url(RowKind.COMMIT, sha)))


def _is_about(delivery: DeliveryRow, question: Question) -> bool:
    if delivery.received_at > question.at:
        return False
    if question.pr_number is None:
        return delivery.event == PUSH
    return delivery.pr_number == question.pr_number


def _is_of(job: JobRow, question: Question) -> bool:
    """Whether a job is about the question's pull request, or its push, and was seen by then."""
    if job.first_seen_at > question.at:
        return False
    if job.dispatch_id is not None:
        return job.pr_number == question.pr_number
    # Dispatched by another relay: only pull requests are told apart then.
    return question.pr_number is not None and job.pr_number == question.pr_number


def _is_held(job: JobRow, accepted: list[Transfer], at: datetime.datetime) -> bool:
    """Whether it was a new owner's whom nobody had accepted by then."""
    return Flag.HELD in job.flags or any(
        one.decided_at and one.opened_at <= job.first_seen_at < one.decided_at and at < one.decided_at
        for one in accepted
    )


def _went_by_push(job: JobRow, at: datetime.datetime) -> bool:
    """Whether a newer push had cancelled it: then nothing is asked of it any more."""
    return job.is_by_push and job.completed_at is not None and job.completed_at <= at


def _own_bucket(job: JobRow) -> str:
    return bucket_of(job.conclusion, Counts(job.passed, job.failed, job.skipped, job.total)).value


def _declares(declared: DeclaredOutcome, job: JobRow, at: datetime.datetime) -> bool:
    return (
        (declared.workflow, declared.job_name) == (job.workflow, job.job_name)
        and declared.starts_at <= job.first_seen_at < declared.ends_at
        and _holds(declared, at, "declared_at", "withdrawn_at")
    )


def _was_overwritten(report: Report, at: datetime.datetime) -> bool:
    """Whether what a report said then is not kept: it was read anew since."""
    return report.parsed_at is not None and report.parsed_at > at and report.revision > 1


def _name_of(test: Test) -> str:
    return f"{test.class_name}.{test.name}" if test.class_name else test.name


_ROUTES = {
    RowKind.JOB: "public:job",
    RowKind.REPORT: "reports:report",
    RowKind.COMMIT: "public:commit",
    RowKind.TEST: "public:test",
    RowKind.DECISION: "audit:decision",
}


# What stands in an address until it is known of what it is.
_NOBODY = {RowKind.JOB: uuid.UUID(int=0), RowKind.REPORT: uuid.UUID(int=0), RowKind.COMMIT: "0" * 40}


@cache
def _around(kind: RowKind) -> tuple[str, str]:
    # A commit has thousands of rows: not each is asked of the router.
    nobody = _NOBODY.get(kind, 0)
    before, _, after = reverse(_ROUTES[kind], args=[nobody]).partition(str(nobody))
    return before, after


def _url(kind: RowKind, key: object) -> str:
    before, after = _around(kind)
    return f"{before}{key}{after}"


def _test_url(number: int) -> str:
    return _url(RowKind.TEST, number)
