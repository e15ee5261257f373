"""Reads of reports, and the access functions through which every edge gets one."""

import re
import uuid
from collections.abc import Iterable
from typing import Any

from django.db.models import F, Q, QuerySet
from django.http import Http404

from apps.core.permissions import Permission
from apps.platforms.models import Platform
from apps.platforms.policy import PUBLIC_FROM
from apps.platforms.selectors import may_on_platform, member_platforms
from apps.relay.models import Job
from apps.results.enums import ReportFlag, ReportState
from apps.results.exclusions import RED, apart
from apps.results.models import Finding, Report, Upload, UploadPart

MISSING_SHOWN = 100
_SHA256 = re.compile(r"[0-9a-f]{64}")


def reports() -> QuerySet[Report]:
    """Every report with what it stands on, newest first: who may see which is `may_see`'s to say."""
    related = ("repository__platform", "source__platform", "dispatch__delivery", "removal", "coverage__reference")
    return Report.objects.select_related(*related).defer("dispatch__delivery__body")


def may_see(user: Any, report: Report) -> bool:
    """Public from L2 up, as it was when the report came. Below that, or while it is held, it is the vendor's members'
    and the maintainers'."""
    return report.is_public or may_see_raw(user, report)


def not_held(report: str = "") -> Q:
    """Reports that no new owner sent whom nobody has accepted. `report`: what leads to the report, with its `__`."""
    is_accepted = Q(**{f"{report}held_owner_id": F(f"{report}repository__github_owner_id")})
    return Q(**{f"{report}held_owner_id": None}) | is_accepted


PUBLIC = Q(source__isnull=False) | Q(level__gte=PUBLIC_FROM) & not_held()


def visible_to(user: Any) -> Q:
    """The same as `may_see`, as a condition on reports."""
    if user.is_anonymous or not user.is_active:
        return PUBLIC
    if user.may(Permission.REPORT_VIEW_PRIVATE):
        return Q()
    own = member_platforms(user)
    return PUBLIC | Q(repository__platform__in=own) | Q(source__platform__in=own)


def may_see_raw(user: Any, report: Report) -> bool:
    """What was uploaded as it came: the vendor's members' and the maintainers' alone."""
    return may_on_platform(user, Permission.REPORT_VIEW_PRIVATE, report.platform)


def report_or_404(public_id: uuid.UUID, user: Any) -> Report:
    """A report that this user may see; for all others it does not exist."""
    found = reports().filter(public_id=public_id).first()
    if found is None or not may_see(user, found):
        raise Http404
    return found


def part_or_404(public_id: uuid.UUID, sha256: str, user: Any) -> UploadPart:
    """One uploaded file of a report, by the digest of its bytes, for who may see what was uploaded."""
    report = report_or_404(public_id, user)
    # An address can spell what PostgreSQL cannot even compare.
    if not may_see_raw(user, report) or not _SHA256.fullmatch(sha256):
        raise Http404
    kept = UploadPart.objects.filter(upload__report=report, upload__raw_removed_at=None)
    part = kept.filter(sha256=sha256).order_by("pk").first()
    if part is None:
        raise Http404
    return part


def removable_or_404(public_id: uuid.UUID) -> Report:
    """A report, for those who may take any down: the route asks for the permission."""
    found = reports().filter(public_id=public_id).first()
    if found is None:
        raise Http404
    return found


def uploads_of(report: Report) -> QuerySet[Upload]:
    """The shards that came, in order, with their jobs and parts."""
    return report.uploads.select_related("job").prefetch_related("parts").order_by("shard")


def missing_of(declared: int, came: Any) -> list[int]:
    """Which of 1 to `declared` did not come."""
    return sorted(set(range(1, declared + 1)) - set(came))


def version_of(public_id: uuid.UUID, user: Any) -> object:
    """What a report's page stands on."""
    report = report_or_404(public_id, user)
    return report.state, report.progress, report.revision, report.wanted, report.changed_at, tuple(report.flags)


def is_read(report: Report) -> bool:
    """Whether its tests can be shown: a report that waits for another reading, or failed at it, has none to show."""
    return report.state == ReportState.READY


def findings_found(report: Report, outcome: str = "", quarantined: str = "") -> QuerySet[Finding]:
    """A report's findings with their tests, in the order of its files; of one outcome, and with `quarantined` (`yes`,
    `no`) only those that are listed apart, or only the others."""
    found = report.findings.select_related("test").order_by("pk")
    if outcome:
        found = found.filter(outcome=outcome)
    if not quarantined:
        return found
    is_apart = Q(test__in=quarantined_of(report), outcome__in=RED)
    return found.filter(is_apart) if quarantined == "yes" else found.exclude(is_apart)


def quarantined_of(report: Report) -> list[int]:
    """The tests whose red in this report is listed apart."""
    return sorted(apart(report, report.findings.filter(outcome__in=RED).select_related("test")))


# Of what is not all there, nobody can say that all its red is known.
_NOT_WHOLE = {ReportFlag.SHARDS_MISSING.value, ReportFlag.DAMAGED.value, ReportFlag.UNKNOWN_OUTCOMES.value}


def is_red_apart(report: Report) -> bool:
    """Whether every failure of a report is listed apart. Of one that is not whole, waits to be read again, or has tests
    that failed in one shard and not in another, that is not known: False."""
    if report.state != ReportState.READY or report.is_pending or _NOT_WHOLE & set(report.flags):
        return False
    red = sum(getattr(report, outcome) or 0 for outcome in RED)
    in_shards = sum(upload.failing or 0 for upload in report.uploads.all())
    return red == in_shards and red == len(quarantined_of(report))


def reports_of_job(job: Job, user: Any) -> QuerySet[Report]:
    """The reports that a job uploaded into, as far as the user may see them."""
    return reports().filter(visible_to(user), uploads__job=job).distinct()


def reports_of_commits(shas: Iterable[str], user: Any) -> QuerySet[Report]:
    """The reports about any of these upstream commits, newest first, as far as the user may see them."""
    return reports().filter(visible_to(user), head_sha__in={sha for sha in shas if sha})


def of_platform(platform: Platform) -> Q:
    """A platform's reports, of its repositories and of its upstream workflows, as a condition on reports."""
    return Q(repository__platform=platform) | Q(source__platform=platform)


def reports_of_platform(platform: Platform, user: Any) -> QuerySet[Report]:
    """A platform's reports, newest first, as far as the user may see them."""
    return reports().filter(of_platform(platform), visible_to(user))
