"""What is left to do: unresolved failures and unexplained skips, by platform and variant."""

import datetime
from dataclasses import dataclass

from django.db.models import Case, Value, When

from apps.results.enums import ReportState
from apps.results.models import Coverage, Report
from apps.results.report_selectors import PUBLIC, reports
from apps.results.skips import SkipClass

BACKLOG_DAYS = 30


@dataclass(frozen=True)
class Left:
    """One platform's variant, by its newest public report. None: not counted yet."""

    report: Report
    coverage: Coverage | None

    @property
    def failures(self) -> int:
        """Tests that are red."""
        report = self.report
        return sum(count or 0 for count in (report.failed, report.error, report.lost, report.xpassed))

    @property
    def known(self) -> int | None:
        """Skips that say the test fails here."""
        return self._skips(SkipClass.KNOWN_FAILURE)

    @property
    def unexplained(self) -> int | None:
        return self._skips(SkipClass.UNEXPLAINED)

    def _skips(self, skip_class: SkipClass) -> int | None:
        return None if self.coverage is None else int(self.coverage.skips.get(skip_class.value, 0))


def backlog(now: datetime.datetime) -> list[Left]:
    """Of each origin and variant the newest public report of the last BACKLOG_DAYS: one of main before one of a pull
    request, whose failures may be the pull request's. Most to do first. One query."""
    since = now - datetime.timedelta(days=BACKLOG_DAYS)
    of_main_first = Case(When(event="pull_request", then=Value(1)), default=Value(0))
    keys = ("repository_id", "source_id", "variant")
    ready = reports().filter(PUBLIC, state=ReportState.READY, received_at__gte=since)
    newest = ready.order_by(*keys, of_main_first, "-received_at", "-pk").distinct(*keys)
    left = [Left(report, getattr(report, "coverage", None)) for report in newest]
    return sorted(left, key=lambda one: (-one.failures - (one.known or 0) - (one.unexplained or 0), one.report.pk))
