"""What the base says of red tests: the reports of main's commits near a merge base, and what was red in them."""

import datetime
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from django.db.models import F

from apps.gate.enums import BaseState
from apps.relay.models import Commit
from apps.results.enums import ReportFlag, ReportState
from apps.results.exclusions import RED
from apps.results.models import Finding, Report
from apps.results.report_selectors import not_held

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


@dataclass
class BaseReports:
    """Reports by (repository, variant), the nearest to main's tip first, and what they name as red."""

    base_commits: int = 0
    reports: dict[tuple[int, str], list[_Read]] = field(default_factory=lambda: defaultdict(list))
    red: dict[tuple[int, int], bytes] = field(default_factory=dict)

    @classmethod
    def load(
        cls, *, repositories: Collection[int], places: Collection[int], tests: Collection[int], base_commits: int
    ) -> "BaseReports":
        """Of these repositories, near these places of main. Three queries, none where nothing is asked."""
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
        keys = [read.pk for them in found.reports.values() for read in them]
        red = Finding.objects.filter(report__in=keys, test__in=tests, outcome__in=RED).order_by()
        for report, test, fingerprint in red.values_list("report_id", "test_id", "fingerprint"):
            found.red[report, test] = bytes(fingerprint)
        return found

    def state(
        self,
        *,
        repository: int,
        variant: str,
        place: int | None,
        sha: str,
        test: int,
        fingerprint: bytes,
        at: datetime.datetime,
    ) -> Base:
        """What the nearest tested commit at or before a place, other than `sha` itself, says of a test, as of a
        moment."""
        if place is None:
            return Base(BaseState.UNKNOWN)
        within = range(place - self.base_commits, place + 1)
        near = [
            read for read in self.reports.get((repository, variant), ()) if read.place in within and read.sha != sha
        ]
        there = [read for read in near if read.is_there(at)]
        if not there:
            return Base(BaseState.UNKNOWN)
        nearest = [read for read in there if read.place == there[0].place]
        base, known = nearest[0].sha, [read for read in nearest if read.is_known(at)]
        red = {self.red[read.pk, test] for read in known if (read.pk, test) in self.red}
        if fingerprint in red:
            return Base(BaseState.SAME, base)
        if len(known) < len(nearest) or not all(read.is_whole for read in nearest):
            return Base(BaseState.UNKNOWN, base)
        return Base(BaseState.OTHER if red else BaseState.GREEN, base)
