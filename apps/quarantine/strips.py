"""The evidence of quarantines as strips: how their tests ended in the newest runs of their platform and variant."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db.models import IntegerField, QuerySet, Value

from apps.quarantine.models import Member, Quarantine
from apps.results import catalogue
from apps.results.enums import ReportState
from apps.results.formats.cases import Outcome
from apps.results.history import TONES
from apps.results.models import Alias, Report
from apps.results.report_selectors import of_platform
from apps.results.report_selectors import visible_to as reports_visible_to

# Cells of a strip, and how many of the newest reports are looked through for them: a platform has several jobs.
RUNS = 15
LOOKED_AT = 30
# Of several tests in one run the worst is shown.
_WORST_FIRST = (
    *(Outcome.FAILED, Outcome.ERROR, Outcome.LOST, Outcome.XPASSED),
    *(Outcome.FLAKY, Outcome.UNKNOWN, Outcome.PASSED, Outcome.XFAILED, Outcome.SKIPPED),
)
_READ = ("public_id", "received_at", "outcomes_name", "head_sha", "job_name")

Place = tuple[int, str]


@dataclass(frozen=True)
class Cell:
    """How the tests of one quarantine ended in one report that names one of them: the worst outcome, how many of them
    ended so, and of how many."""

    report: Report
    outcome: Outcome
    ended_so: int
    named: int

    @property
    def tone(self) -> str:
        return TONES[self.outcome]

    @property
    def word(self) -> str:
        """The outcome; of several tests with its count."""
        return self.outcome.label if self.named == 1 else f"{self.ended_so:,} of {self.named:,} {self.outcome.label}"

    @property
    def drawn(self) -> tuple[str, str, str]:
        """As the component takes it."""
        return f"{self.report.received_at:%Y-%m-%d %H:%M} UTC", self.tone, self.word


def strips_of(quarantines: Sequence[Quarantine], user: Any) -> dict[int, list[Cell]]:
    """By quarantine, up to RUNS cells, oldest first, of reports that the user may see. Four queries, and each file is
    read once for all quarantines of its place."""
    tests = _tests_of(quarantines)
    earlier = catalogue.earlier_names({test for of in tests.values() for test in of})
    by_place: dict[Place, list[Quarantine]] = defaultdict(list)
    for quarantine in quarantines:
        if quarantine.platform_id is not None and tests[quarantine.pk]:
            by_place[quarantine.platform_id, quarantine.variant].append(quarantine)
    strips: dict[int, list[Cell]] = {quarantine.pk: [] for quarantine in quarantines}
    for place, reports in _newest(by_place, user).items():
        left = by_place[place]
        for report in reports:
            left = [one for one in left if len(strips[one.pk]) < RUNS]
            ended = _ended(report, {test for one in left for test in tests[one.pk]}, earlier)
            for one in left:
                if cell := _cell(report, [ended[test] for test in tests[one.pk] if test in ended]):
                    strips[one.pk].append(cell)
    return {pk: cells[::-1] for pk, cells in strips.items()}


def _tests_of(quarantines: Iterable[Quarantine]) -> dict[int, list[int]]:
    """The tests of each, under their newest names."""
    rows = list(Member.objects.filter(quarantine__in=quarantines).values_list("quarantine_id", "test_id"))
    renamed = dict(Alias.objects.filter(old__in={test for _, test in rows}).values_list("old_id", "new_id"))
    found: dict[int, set[int]] = defaultdict(set)
    for quarantine, test in rows:
        found[quarantine].add(renamed.get(test, test))
    return defaultdict(list, {quarantine: sorted(tests) for quarantine, tests in found.items()})


def _newest(places: dict[Place, list[Quarantine]], user: Any) -> dict[Place, list[Report]]:
    """The newest reports of each place, newest first: one query for all."""
    if not places:
        return {}
    ready = (
        Report.objects.filter(reports_visible_to(user), state=ReportState.READY).exclude(outcomes_name="").only(*_READ)
    )
    order = list(places)

    def newest(at: int) -> QuerySet[Report]:
        platform = places[order[at]][0].platform
        assert platform is not None
        of_place = ready.filter(of_platform(platform), variant=order[at][1]).order_by("-received_at", "-pk")
        return of_place.annotate(at=Value(at, IntegerField()))[:LOOKED_AT]

    first, *others = [newest(at) for at in range(len(order))]
    found: dict[Place, list[Report]] = defaultdict(list)
    for report in first.union(*others, all=True) if others else first:
        found[order[report.at]].append(report)  # type: ignore[attr-defined]
    return {place: sorted(of, key=lambda one: (one.received_at, one.pk), reverse=True) for place, of in found.items()}


def _ended(report: Report, tests: set[int], earlier: dict[int, int]) -> dict[int, Outcome]:
    """How these tests ended in a report; under an earlier name where it does not name the newest."""
    from apps.results import outcomes  # pyarrow: for the memory of those processes that are asked

    if not tests:
        return {}
    older = {old: new for old, new in earlier.items() if new in tests}
    # Taken down, or read anew, since it was chosen: then its file is gone.
    with suppress(outcomes.Gone):
        found = outcomes.outcomes_of(report.outcomes_name, tests | older.keys())
        as_older = {older[test]: ended for test, ended in found.items() if test in older}
        return as_older | {test: ended for test, ended in found.items() if test not in older}
    return {}


def _cell(report: Report, ended: list[Outcome]) -> Cell | None:
    if not ended:
        return None
    worst = min(ended, key=_WORST_FIRST.index)
    return Cell(report, worst, ended.count(worst), len(ended))
