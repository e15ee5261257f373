"""What the base says of red tests: the reports of main's commits near a merge base, and what was red in them."""

import datetime
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from django.db.models import CharField, F

from apps.core.lookups import any_of
from apps.gate.enums import BaseState
from apps.relay.enums import Bucket, Flag
from apps.relay.models import Commit, Job
from apps.results.enums import ReportFlag, ReportState
from apps.results.exclusions import RED
from apps.results.models import Finding, Report
from apps.results.report_selectors import not_held

# A job that ended so tested nothing; nor did one of which the hub heard no end, or of an owner whom nobody accepted.
_UNTESTED = (Bucket.CANCELLED, Bucket.NEUTRAL)
_UNHEARD = {Flag.INFERRED.value, Flag.HELD.value}
# With any of these a test that a report does not name as red may have been.
_CUT = {
    ReportFlag.FINDINGS_CUT.value,
    ReportFlag.SHARDS_MISSING.value,
    ReportFlag.DAMAGED.value,
    ReportFlag.UNKNOWN_OUTCOMES.value,
}


@dataclass(frozen=True)
class Base:
    """What the base says of one test, and which commit that is."""

    state: BaseState
    sha: str = ""


@dataclass(frozen=True)
class _Read:
    """A report of a commit of main. `is_whole`: what it does not name as red was not."""

    pk: int
    place: int
    sha: str
    received_at: datetime.datetime
    parsed_at: datetime.datetime | None
    revision: int
    is_whole: bool
    removed_at: datetime.datetime | None

    def is_there(self, at: datetime.datetime) -> bool:
        """Whether it had been read by then, or had been and was read anew, or taken down, since: then nobody knows what
        it said."""
        if self.received_at > at or (self.removed_at is not None and self.removed_at <= at):
            return False
        if self.removed_at is not None:
            return True
        return self.is_known(at) or self.revision > 1

    def is_known(self, at: datetime.datetime) -> bool:
        return self.removed_at is None and self.parsed_at is not None and self.parsed_at <= at


# A check: repository, workflow and job name.
Check = tuple[int, str, str]


@dataclass
class BaseReports:
    """Reports by (repository, variant), the nearest to main's tip first, and what they name as red; and by check where
    it has ended: (place, sha, when)."""

    base_commits: int = 0
    reports: dict[tuple[int, str], list[_Read]] = field(default_factory=lambda: defaultdict(list))
    red: dict[tuple[int, int], bytes] = field(default_factory=dict)
    ended: dict[Check, list[tuple[int, str, datetime.datetime]]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def load(
        cls,
        *,
        checks: Collection[Check],
        others: Collection[int],
        places: Collection[int],
        tests: Collection[int],
        base_commits: int,
    ) -> "BaseReports":
        """Of these checks, and of the reports of other repositories (primary keys), near these places of main. Four
        queries, none where nothing is asked."""
        repositories = {repository for repository, _, _ in checks} | set(others)
        found = cls(base_commits)
        if not repositories or not places or not tests:
            return found
        near = Commit.objects.filter(position__gte=min(places) - base_commits, position__lte=max(places))
        commits = dict(near.values_list("sha", F("position")))
        reports = Report.objects.filter(
            not_held(),
            repository__in=repositories,
            head_sha__in=commits,
            state__in=(ReportState.READY, ReportState.REMOVED),
        ).exclude(flags__contains=[ReportFlag.UNKNOWN_COMMIT.value])
        wanted = ("pk", "repository_id", "variant", "head_sha", "received_at", "parsed_at", "revision", "flags")
        for row in reports.order_by().values_list(*wanted, "removal__removed_at"):
            pk, repository, variant, sha, received_at, parsed_at, revision, flags, removed_at = row
            is_whole = not _CUT & set(flags)
            read = _Read(pk, commits[sha], sha, received_at, parsed_at, revision, is_whole, removed_at)
            found.reports[repository, variant].append(read)
        for them in found.reports.values():
            them.sort(key=lambda read: (-read.place, read.pk))
        jobs = Job.objects.filter(
            any_of("head_sha", commits, CharField(max_length=40)),
            repository__in=repositories,
            job_name__in={name for _, _, name in checks},
            completed_at__isnull=False,
        ).exclude(bucket__in=_UNTESTED)
        wanted_of_jobs = ("repository_id", "workflow", "job_name", "head_sha", "completed_at", "flags")
        for repository, workflow, name, sha, ended_at, flags in jobs.order_by().values_list(*wanted_of_jobs):
            if (repository, workflow, name) in checks and ended_at and not _UNHEARD & set(flags):
                found.ended[repository, workflow, name].append((commits[sha], sha, ended_at))
        keys = [read.pk for them in found.reports.values() for read in them]
        red = Finding.objects.filter(report__in=keys, test__in=tests, outcome__in=RED).order_by()
        for report, test, fingerprint in red.values_list("report_id", "test_id", "fingerprint"):
            found.red[report, test] = bytes(fingerprint)
        return found

    def state(
        self,
        *,
        check: Check,
        variant: str,
        place: int | None,
        sha: str,
        test: int,
        fingerprint: bytes,
        at: datetime.datetime,
    ) -> Base:
        """What the nearest tested commit at or before a place, other than `sha` itself, says of a test, as of a moment.
        Where the check has ended on a commit that is nearer than its newest report, nobody knows what it said there."""
        if place is None:
            return Base(BaseState.UNKNOWN)
        within = range(place - self.base_commits, place + 1)
        near = [read for read in self.reports.get((check[0], variant), ()) if read.place in within and read.sha != sha]
        there = [read for read in near if read.is_there(at)]
        if not there:
            return Base(BaseState.UNKNOWN)
        nearest = [read for read in there if read.place == there[0].place]
        if any(
            there[0].place < ended and ended in within and other != sha and ended_at <= at
            for ended, other, ended_at in self.ended.get(check, ())
        ):
            return Base(BaseState.UNKNOWN)
        base, known = nearest[0].sha, [read for read in nearest if read.is_known(at)]
        red = {self.red[read.pk, test] for read in known if (read.pk, test) in self.red}
        if fingerprint in red:
            return Base(BaseState.SAME, base)
        if len(known) < len(nearest) or not all(read.is_whole for read in nearest):
            return Base(BaseState.UNKNOWN, base)
        return Base(BaseState.OTHER if red else BaseState.GREEN, base)
