"""What flaky tests cost: the pull requests that each turned red, and the hours of the jobs that ended so."""

import datetime
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from apps.platforms.models import Platform
from apps.quarantine.models import FlakeEvent
from apps.relay.enums import Bucket
from apps.relay.models import Job
from apps.results.models import Alias, Report, Test, Upload
from apps.results.report_selectors import visible_to as reports_visible_to

DAYS = 30
# Of the newest signs so many are looked at.
LOOKED_AT = 20_000
_HOUR = 3_600


class Key(NamedTuple):
    """A test on one platform's variant: evidence of one says nothing about another."""

    platform: int
    variant: str
    test: int


@dataclass
class Cost:
    """One test's cost. `jobs`: those that ended red with a report in which it flaked; a job that several tests turned
    red counts for each. `hours`: how long those ran, None where of none it is known."""

    key: Key
    flakes: int = 0
    newest: datetime.datetime | None = None
    report: Any = None
    jobs: dict[int, Job] = field(default_factory=dict)
    test: Test | None = None
    platform: Platform | None = None

    @property
    def pull_requests(self) -> list[int]:
        """The pull requests of those jobs, by number."""
        return sorted({job.pr_number for job in self.jobs.values() if job.pr_number is not None})

    @property
    def hours(self) -> float | None:
        known = [seconds for job in self.jobs.values() if (seconds := job.execution_seconds) is not None]
        return sum(known) / _HOUR if known else None


def costs(user: Any, *, now: datetime.datetime) -> list[Cost]:
    """What was flaky in the last days, of reports that this user may see: most pull requests first, then most hours,
    then most flakes. Incidents do not count. Renamed tests stand under their new names. Three queries."""
    begun = now - datetime.timedelta(days=DAYS)
    events = FlakeEvent.objects.filter(at__gt=begun, at__lte=now, is_in_incident=False)
    seen = events.filter(report__in=Report.objects.filter(reports_visible_to(user)))
    columns = ("platform_id", "variant", "test_id", "report_id", "report__public_id", "at")
    rows = list(seen.order_by("-at", "-pk").values_list(*columns)[:LOOKED_AT])
    renamed = dict(Alias.objects.filter(old__in={row[2] for row in rows}).values_list("old_id", "new_id"))
    red = _red_jobs({row[3] for row in rows})
    found: dict[Key, Cost] = {}
    for platform, variant, test, report, public_id, at in rows:
        key = Key(platform, variant, renamed.get(test, test))
        cost = found.setdefault(key, Cost(key, newest=at, report=public_id))
        cost.flakes += 1
        cost.jobs |= red[report]
    return sorted(found.values(), key=lambda one: (-len(one.pull_requests), -(one.hours or 0), -one.flakes, one.key))


def _red_jobs(reports: Iterable[int]) -> dict[int, dict[int, Job]]:
    """By report, the jobs that uploaded it and ended red."""
    uploads = Upload.objects.filter(report__in=reports, job__bucket=Bucket.FAILURE).select_related("job")
    found: dict[int, dict[int, Job]] = defaultdict(dict)
    for upload in uploads:
        if upload.job is not None:
            found[upload.report_id][upload.job.pk] = upload.job
    return found


def named(page: Iterable[Cost]) -> None:
    """Put the tests and platforms of one page's rows where the page finds them. Two queries."""
    rows = list(page)
    tests = Test.objects.in_bulk([row.key.test for row in rows])
    platforms = Platform.objects.in_bulk([row.key.platform for row in rows])
    for row in rows:
        row.test, row.platform = tests[row.key.test], platforms[row.key.platform]
