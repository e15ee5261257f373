"""What a report can be compared with: the one before, the base commit's, another platform's at the same commit.

Each is of the same variant, ready, and visible to who asks. None is unknown, in words: never “no change”.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from apps.core.errors import Problem
from apps.relay.graph_selectors import LOOKED_BACK, base_of, place_of
from apps.relay.models import Commit
from apps.results.enums import ReportFlag, ReportState
from apps.results.models import Report
from apps.results.report_selectors import reports, visible_to

# So many reports back the same job is looked for.
PREVIOUS_LOOKED_AT = 20
# So many reports of one commit are looked at.
OF_COMMIT_MAX = 50


@dataclass(frozen=True)
class Base:
    """One that was looked for: `words` say which it is, or why there is none."""

    kind: str
    report: Report | None
    words: str


def bases_of(report: Report, user: Any) -> list[Base]:
    """The previous report, the base commit's, and each other platform's of the commit, in this order."""
    if report.state != ReportState.READY:
        return []
    return [previous_of(report, user), base_commit_of(report, user), *platforms_of(report, user)]


def base_called(word: str, head: Report, user: Any) -> Report:
    """The base of `head` that is called so: `previous`, `base` (the base commit's), or the slug of another platform.
    Raises Problem `not_found` where there is none, with why."""
    if word == "previous":
        found = previous_of(head, user)
    elif word == "base":
        found = base_commit_of(head, user)
    else:
        none = Base("platform", None, f"none: the platform {word[:60]} did not report this commit in this variant")
        others = platforms_of(head, user)
        found = next((other for other in others if other.report and other.report.platform.slug == word), none)
    if found.report is None:
        raise Problem("not_found", f"base: {found.words}.", "base")
    return found.report


def comparable_with(report: Report, user: Any) -> QuerySet[Report]:
    """Every other report that may be held against this one, newest first. A commit that upstream does not know is
    nobody's base."""
    found = reports().filter(visible_to(user), variant=report.variant, state=ReportState.READY)
    return found.exclude(Q(pk=report.pk) | Q(flags__contains=[ReportFlag.UNKNOWN_COMMIT.value]))


def _own(report: Report, user: Any) -> QuerySet[Report]:
    return comparable_with(report, user).filter(repository=report.repository, source=report.source)


def previous_of(report: Report, user: Any) -> Base:
    """The newest earlier report of the same origin from another run: of the same job where one is near."""
    earlier = _own(report, user).filter(received_at__lte=report.received_at).exclude(run_id=report.run_id)
    near = list(earlier[:PREVIOUS_LOOKED_AT])
    same_job = [other for other in near if other.job_name == report.job_name]
    found = next(iter(same_job or near), None)
    return Base("previous", found, "the run before" if found else "none: this is the first of its variant")


def base_commit_of(report: Report, user: Any) -> Base:
    """The same origin's report of the base commit (the merge base; of a commit of main its parent), else of the nearest
    ancestor that was reported."""
    own = _own(report, user)
    sha, place = base_commit(report)
    if sha and (found := own.filter(head_sha=sha).first()):
        return Base("base", found, "of the base commit")
    if place is None:
        return Base("base", None, "unknown: where this commit left main is not known")
    near = Commit.objects.filter(position__lte=place, position__gt=place - LOOKED_BACK)
    commit = near.filter(Exists(own.filter(head_sha=OuterRef("sha")))).order_by("-position").first()
    if commit is None or commit.position is None:
        return Base("base", None, f"none: nothing was reported of the {LOOKED_BACK:,} commits before")
    behind = place - commit.position
    words = "of the base commit" if not behind else f"{behind:,} commit{'s' * (behind > 1)} before the base commit"
    return Base("base", own.filter(head_sha=commit.sha).first(), words)


def base_commit(report: Report) -> tuple[str, int | None]:
    """The commit that a report's changes stand on ('' unknown), and its place on main (None unknown)."""
    if not report.head_sha:
        return "", None
    own = Commit.objects.filter(sha=report.head_sha, position__isnull=False).first()
    if own is not None and own.position is not None:
        return own.parent_sha, own.position - 1
    number = report.dispatch.delivery.pr_number if report.dispatch else None
    sha = base_of(number, report.head_sha).sha if number is not None else None
    return sha or "", place_of(report.head_sha)


def platforms_of(report: Report, user: Any) -> list[Base]:
    """The newest report of each other platform at the same commit."""
    if not report.head_sha:
        return []
    found: dict[int, Report] = {}
    for other in comparable_with(report, user).filter(head_sha=report.head_sha)[:OF_COMMIT_MAX]:
        if other.platform != report.platform:
            found.setdefault(other.platform.pk, other)
    return [Base("platform", other, f"{other.platform.name}, the same commit") for other in found.values()]
