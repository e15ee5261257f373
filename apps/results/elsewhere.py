"""The same failure elsewhere: is it this platform, this change, or was it there before?

Looked for among the reports of the same variant at the same commit, and at the base commit: the same test red, or the
same fingerprint under any test.
"""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count

from apps.results.bases import OF_COMMIT_MAX, base_commit_of, comparable_with
from apps.results.catalogue import earlier_names
from apps.results.exclusions import apart
from apps.results.models import Exclusion, Finding, Report


class Verdict(enum.StrEnum):
    """What the other reports suggest."""

    BEFORE = "before"
    ELSEWHERE = "elsewhere"
    HERE = "here"
    UNKNOWN = "unknown"


# What each means, and its tone.
VERDICTS: dict[Verdict, tuple[str, str]] = {
    Verdict.BEFORE: ("info", "there before: it is found at the base commit too"),
    Verdict.ELSEWHERE: ("info", "not here alone: another platform has it at this commit"),
    Verdict.HERE: ("warn", "here alone: no other platform that reported this commit has it"),
    Verdict.UNKNOWN: ("quiet", "unknown: no other platform reported this commit"),
}


def verdict_of(*, is_at_base: bool, is_elsewhere: bool, others: int) -> Verdict:
    """Of one finding: whether the base has it, whether another platform at the commit has it, of how many others."""
    if is_at_base:
        return Verdict.BEFORE
    if is_elsewhere:
        return Verdict.ELSEWHERE
    return Verdict.HERE if others else Verdict.UNKNOWN


@dataclass(frozen=True)
class Sighting:
    """Another report that has it: `outcome` of the same test there, '' where that is not among its findings;
    `same_failure`: how many of its tests have the fingerprint."""

    report: Report
    is_base: bool
    outcome: str
    same_failure: int


@dataclass(frozen=True)
class Seen:
    """One finding, where else it is, and by what it is listed apart."""

    finding: Finding
    verdict: Verdict
    sightings: list[Sighting]
    exclusion: Exclusion | None

    @property
    def failure(self) -> str:
        """The fingerprint as hex."""
        return bytes(self.finding.fingerprint).hex()

    @property
    def tone(self) -> str:
        return VERDICTS[self.verdict][0]

    @property
    def meaning(self) -> str:
        return VERDICTS[self.verdict][1]


@dataclass(frozen=True)
class Others:
    """The reports that are looked through: at the same commit, and at the base."""

    at_commit: list[Report]
    at_base: list[Report]
    base_words: str


def others_of(report: Report, user: Any) -> Others:
    """What a reader may see of the same commit and variant, and of the base."""
    if not report.head_sha:
        return Others([], [], "no commit is named")
    visible = comparable_with(report, user)
    base = base_commit_of(report, user)
    at_base = visible.filter(head_sha=base.report.head_sha)[:OF_COMMIT_MAX] if base.report else []
    return Others(list(visible.filter(head_sha=report.head_sha)[:OF_COMMIT_MAX]), list(at_base), base.words)


@dataclass
class _Found:
    """By report: the outcome of a test, how many tests have a fingerprint."""

    outcomes: dict[tuple[int, int], str] = field(default_factory=dict)
    same: dict[tuple[int, bytes], int] = field(default_factory=dict)


def seen_elsewhere(findings: Sequence[Finding], report: Report, others: Others) -> list[Seen]:
    """Each of a page's findings of a report, with where else it is. Four queries."""
    found = _look([*others.at_commit, *others.at_base], findings)
    platforms = {other.platform.pk for other in others.at_commit} - {report.platform.pk}
    seen, excluded = [], apart(report, findings)
    for finding in findings:
        sightings = [
            Sighting(other, is_base, outcome, same)
            for is_base, reports in ((False, others.at_commit), (True, others.at_base))
            for other in reports
            for outcome in (found.outcomes.get((other.pk, finding.test_id), ""),)
            for same in (found.same.get((other.pk, bytes(finding.fingerprint)), 0),)
            if outcome or same
        ]
        verdict = verdict_of(
            is_at_base=any(sighting.is_base for sighting in sightings),
            is_elsewhere=any(sighting.report.platform.pk in platforms for sighting in sightings),
            others=len(platforms),
        )
        seen.append(Seen(finding, verdict, sightings, excluded.get(finding.test_id)))
    return seen


def _look(reports: Iterable[Report], findings: Sequence[Finding]) -> _Found:
    found = _Found()
    tests = [finding.test_id for finding in findings]
    earlier = earlier_names(tests)
    theirs = Finding.objects.filter(report__in=list(reports))
    of_tests = theirs.filter(test__in=[*tests, *earlier])
    for pk, test, outcome in of_tests.values_list("report_id", "test_id", "outcome"):
        found.outcomes[pk, earlier.get(test, test)] = outcome
    # Counted by PostgreSQL: one failure may stand under every test of a report.
    same = theirs.filter(fingerprint__in={bytes(finding.fingerprint) for finding in findings})
    for pk, fingerprint, count in same.order_by().values_list("report_id", "fingerprint").annotate(Count("pk")):
        found.same[pk, bytes(fingerprint)] = count
    return found
