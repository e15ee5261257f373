"""One test across runs and platforms, within one variant."""

import contextlib
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.http import Http404

from apps.core.permissions import Permission
from apps.results import catalogue
from apps.results.compare import messages_of
from apps.results.enums import ReportState
from apps.results.formats.cases import RED, Outcome
from apps.results.models import Alias, PublicTest, Reason, Report, Test
from apps.results.report_selectors import reports, visible_to

# The newest reports of the variant that are looked through.
REPORTS_MAX = 200
SEARCHED_MAX = 50
DEFAULT_VARIANT = "default"
NOT_THERE = "not in this report"
# An outcome's tone where it is shown as a cell.
TONES: dict[Outcome, str] = {
    Outcome.PASSED: "good",
    Outcome.XFAILED: "good",
    Outcome.FLAKY: "warn",
    Outcome.UNKNOWN: "warn",
    Outcome.SKIPPED: "info",
} | dict.fromkeys(RED, "bad")


@dataclass(frozen=True)
class Run:
    """One report, and how the test ended there; None where it does not name it."""

    report: Report
    outcome: Outcome | None

    @property
    def tone(self) -> str:
        return "quiet" if self.outcome is None else TONES[self.outcome]

    @property
    def word(self) -> str:
        return NOT_THERE if self.outcome is None else self.outcome.label


@dataclass(frozen=True)
class History:
    """A test's runs, newest first: of the newest `looked_at` reports of its variant those that name it. `strips`: by
    platform its runs, oldest first, with those reports of the same jobs that do not name it."""

    test: Test
    variant: str
    variants: list[str]
    runs: list[Run]
    strips: list[tuple[str, list[Run]]]
    looked_at: int


@dataclass(frozen=True)
class Detail:
    """One run with what its report says of the test. `ms` None: nobody said; `message`: of a skip, or of a finding."""

    run: Run
    attempts: int
    ms: int | None
    message: str

    @property
    def seconds(self) -> float | None:
        return None if self.ms is None else self.ms / 1_000


def history_of(number: int, user: Any, *, variant: str = "", platform: str = "") -> History:
    """A test's history as far as the user may see it; `platform`: a slug. Raises Http404 where there is no such test,
    or only reports that the user may not see name it."""
    test = Test.objects.filter(pk=number).first()
    if test is None:
        raise Http404
    alias = Alias.objects.filter(old=test).select_related("new").first()
    test = alias.new if alias else test
    visible = reports().filter(visible_to(user), state=ReportState.READY)
    variants = sorted(set(visible.order_by().values_list("variant", flat=True).distinct()))
    chosen = variant or (DEFAULT_VARIANT if DEFAULT_VARIANT in variants or not variants else variants[0])
    newest = list(visible.filter(variant=chosen)[:REPORTS_MAX])
    looked_at = [report for report in newest if platform in ("", report.platform.slug)]
    runs = _runs(looked_at, [test.pk, *catalogue.earlier_names([test.pk])])
    named = [run for run in runs if run.outcome is not None]
    if not named and not PublicTest.objects.filter(test=test).exists():
        raise Http404
    return History(test, chosen, variants, named, _strips(runs, named), len(looked_at))


def _runs(looked_at: list[Report], numbers: list[int]) -> list[Run]:
    from apps.results import outcomes  # pyarrow: for the memory of those processes that are asked

    runs = []
    for report in looked_at:
        # Taken down, or read anew, since it was chosen: then its file is gone.
        with contextlib.suppress(outcomes.Gone):
            runs.append(Run(report, outcomes.outcome_of(report.outcomes_name, numbers)))
    return runs


def _strips(runs: list[Run], named: list[Run]) -> list[tuple[str, list[Run]]]:
    jobs = {(run.report.platform.pk, run.report.job_name) for run in named}
    strips: dict[tuple[str, int], list[Run]] = defaultdict(list)
    for run in reversed(runs):
        if (run.report.platform.pk, run.report.job_name) in jobs:
            strips[run.report.platform.name, run.report.platform.pk].append(run)
    return [(name, of_platform) for (name, _), of_platform in sorted(strips.items(), key=lambda item: item[0])]


def details_of(test: Test, runs: list[Run]) -> list[Detail]:
    """Each run with its time, attempts and message; those whose report went away meanwhile are left out. Three
    queries."""
    from apps.results import outcomes  # pyarrow: for the memory of those processes that are asked

    numbers = [test.pk, *catalogue.earlier_names([test.pk])]
    rows = []
    for run in runs:
        with contextlib.suppress(outcomes.Gone):
            found = (outcomes.row_of(run.report.outcomes_name, number) for number in numbers)
            if row := next(filter(None, found), None):
                rows.append((run, row))
    reasons = Reason.objects.in_bulk([row.reason for _, row in rows if row.reason is not None])
    said = messages_of([run.report for run in runs], numbers)
    return [
        Detail(run, row.attempts, row.ms, said.get(run.report.pk) or _text(reasons.get(row.reason or 0)))
        for run, row in rows
    ]


def _text(reason: Reason | None) -> str:
    return reason.text if reason else ""


def tests_found(text: str, user: Any) -> list[Test]:
    """Up to SEARCHED_MAX tests whose file, class and name hold every word: those that public reports name; for who may
    see private reports everywhere all. Raises Problem `malformed` for words that are too short."""
    sees_all = user.is_authenticated and user.may(Permission.REPORT_VIEW_PRIVATE)
    return catalogue.search(text, limit=SEARCHED_MAX, only_public=not sees_all)
