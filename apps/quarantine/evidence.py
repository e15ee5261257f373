"""From a report to the evidence of flaky tests: its reading, flake events, streaks. docs/quarantine.md says the rules.

All of it is a function of the reports that count, whatever order they come in: what a report can change — the next run
of its job, the other reports of its commit, tests that are red without end — is worked out anew when it is read, read
again or taken down.
"""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from numpy.typing import NDArray

from apps.quarantine import rules as rule_versions
from apps.quarantine import streaks
from apps.quarantine.enums import FlakeKind
from apps.quarantine.models import FlakeEvent, Reading, Streak
from apps.quarantine.policy import USUAL_OF, is_incident, usual
from apps.quarantine.signs import Signs, Tests, Witness, contradicted, signs_of, turned
from apps.relay.models import Commit
from apps.results import catalogue, outcomes
from apps.results.enums import ReportFlag, ReportState
from apps.results.formats.cases import evidence_of
from apps.results.models import Reason, Report
from apps.results.namesakes import newest_names
from apps.results.report_selectors import of_platform

# The newest reports of one commit that are held against each other.
OF_COMMIT_MAX = 50
# Of a run in which everything goes wrong nobody reads all: so many of its tests leave rows.
ROWS_MAX = 10_000
# So many reports back streaks are counted anew when one came late: more than any of them needs to be raised.
REPLAYED = 50
_BATCH = 1_000


@dataclass(frozen=True)
class Opened:
    """A report, opened: its outcomes, renamed tests under their new numbers; arrays ascend. Its file is read once."""

    report: Report

    @cached_property
    def _columns(self) -> tuple[Tests, NDArray[np.int8]]:
        read = outcomes.read(self.report.outcomes_name)
        tests = catalogue.renamed(read["test"])
        order = np.argsort(tests, kind="stable")
        return tests[order], read["outcome"][order]

    @property
    def tests(self) -> Tests:
        """All that it names."""
        return self._columns[0]

    @cached_property
    def signs(self) -> Signs:
        return signs_of(*self._columns)

    @cached_property
    def evidenced(self) -> Tests:
        """Tests whose skip says, in upstream's words, that they were red and green when run many times."""
        read = outcomes.read(self.report.outcomes_name, ["test", "reason"])
        numbers = np.unique(read["reason"][read["reason"] >= 0]).tolist()
        said = Reason.objects.filter(pk__in=numbers, text__startswith="{").values_list("pk", "text")
        flaky = [pk for pk, text in said if (found := evidence_of(text)) is not None and found.is_flaky]
        return np.sort(catalogue.renamed(read["test"])[np.isin(read["reason"], flaky)])

    def look(self, known: Iterable[int]) -> streaks.Look:
        """As streaks see it. `known`: the tests that are red so far, of whose passes they have to hear."""
        report, so_far = self.report, np.fromiter(known, np.int64)
        # Not intersect1d: it hashes every test of the report.
        green = so_far[np.isin(so_far, self.signs.green)]
        return streaks.Look(report.pk, report.head_sha, report.received_at, self.signs.red.tolist(), green.tolist())


def counted() -> QuerySet[Report]:
    """Reports that are evidence: read, of an owner whom somebody has accepted, of a commit that upstream knows."""
    accepted = Q(held_owner_id=None) | Q(held_owner_id=F("repository__github_owner_id")) | Q(source__isnull=False)
    found = Report.objects.filter(accepted, state=ReportState.READY)
    return found.exclude(flags__contains=[ReportFlag.UNKNOWN_COMMIT.value]).select_related(
        "repository__platform", "source__platform"
    )


def unsettled() -> QuerySet[Report]:
    """Reports whose evidence is not that of their present reading: new, read again, accepted, doubted, taken down."""
    reading = Reading.objects.filter(report=OuterRef("pk"))
    is_counted = Exists(counted().filter(pk=OuterRef("pk")))
    is_due = is_counted & ~Exists(reading.filter(revision=OuterRef("revision"))) | ~is_counted & Exists(reading)
    return Report.objects.filter(is_due).order_by("received_at", "pk")


@transaction.atomic
def settle(*, report_pk: int, now: datetime.datetime) -> Report:
    """Bring the evidence up to date with one report, whatever has happened to it. May run twice without harm."""
    report = Report.objects.select_related("repository__platform", "source__platform").get(pk=report_pk)
    _lock(report)
    was_read = Reading.objects.filter(report=report).exists()
    seen = Opened(report) if counted().filter(pk=report.pk).exists() else None
    if seen is None:
        Reading.objects.filter(report=report).delete()
    else:
        _measure(seen, now)
    for later in _next_run(report):
        _measure(Opened(later), now)
    _write_own(report, seen)
    witnesses = _write_disagreements(report, seen)
    _mark_incidents([*_judge(report), *witnesses, report.pk])
    if seen is None or was_read or _of_place(report).filter(_after(report)).exists():
        _replay(report)
    else:
        before = _streaks_of(report)
        _store_streaks(report, streaks.advanced(before, seen.look(before)))
    return report


def _lock(report: Report) -> None:
    """One report of a platform and variant at a time: each stands on what the others wrote."""
    name = f"quarantine: evidence {report.platform.pk} {report.variant}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def _of_place(report: Report) -> QuerySet[Report]:
    """The platform's reports of this variant that have been read for evidence, and count."""
    return counted().filter(of_platform(report.platform), variant=report.variant, reading__isnull=False)


def _line(report: Report) -> dict[str, Any]:
    """The same job's reports."""
    origin = {"repository": report.repository, "source": report.source}
    return origin | {"job_name": report.job_name, "variant": report.variant}


def _after(report: Report, prefix: str = "") -> Q:
    at, key = f"{prefix}received_at", f"{prefix}pk__gt"
    return Q(**{f"{at}__gt": report.received_at}) | Q(**{at: report.received_at, key: report.pk})


# --- incidents ----------------------------------------------------------------------------------------------------


def _measure(seen: Opened, now: datetime.datetime) -> None:
    """How many of its tests are red or flaky and were not red in the job's run before."""
    report = seen.report
    other_runs = counted().filter(**_line(report)).exclude(_after(report)).exclude(run_id=report.run_id)
    before = other_runs.order_by("-received_at", "-pk").first()
    size = turned(seen.signs, None if before is None else Opened(before).signs)
    Reading.objects.update_or_create(
        report=report,
        defaults={"revision": report.revision, "red": len(seen.signs.red), "turned": size, "read_at": now},
    )


def _next_run(report: Report) -> list[Report]:
    """The reports of the same job's next run that have been read: the run before them is this one."""
    later = counted().filter(_after(report), **_line(report), reading__isnull=False).exclude(run_id=report.run_id)
    following = later.order_by("received_at", "pk").first()
    return [] if following is None else list(later.filter(run_id=following.run_id))


def _judge(report: Report) -> list[int]:
    """Say of a job's readings, from this report's on, what was usual and whether they are incidents. Returns whose.

    The first of all has nothing before it that says what turned red, so it says nothing of what is usual.
    """
    line = Reading.objects.filter(**{f"report__{name}": value for name, value in _line(report).items()})
    ordered = line.select_related("report").order_by("report__received_at", "report__pk")
    earlier = ordered.exclude(Q(report=report) | _after(report, "report__"))
    before = list(earlier.reverse()[: USUAL_OF + 1])[::-1]
    # Whatever comes later does not reckon with this one any more.
    due = list(ordered.filter(Q(report=report) | _after(report, "report__"))[: USUAL_OF + 2])
    first = ordered.values_list("pk", flat=True).first()
    earlier_runs = [(one.report.run_id, one.turned) for one in before if one.pk != first]
    for reading in due:
        own = reading.report
        reading.usual = usual([turned for run_id, turned in earlier_runs if run_id != own.run_id])
        reading.is_incident = is_incident(reading.turned, reading.usual, rule_versions.in_force(own.received_at))
        if reading.pk != first:
            earlier_runs.append((own.run_id, reading.turned))
    Reading.objects.bulk_update(due, ["usual", "is_incident"])
    return [reading.pk for reading in due]


def _mark_incidents(reports: list[int]) -> None:
    """No event of an incident counts, nor one that was held against it."""
    incidents = Reading.objects.filter(is_incident=True)
    of_report, of_other = incidents.filter(pk=OuterRef("report")), incidents.filter(pk=OuterRef("other"))
    events = FlakeEvent.objects.filter(Q(report__in=reports) | Q(other__in=reports))
    affected = Q(Exists(of_report)) | Q(Exists(of_other))
    events.filter(affected, is_in_incident=False).update(is_in_incident=True)
    events.filter(~affected, is_in_incident=True).update(is_in_incident=False)


# --- events -------------------------------------------------------------------------------------------------------


def _event(report: Report, test: int, kind: FlakeKind, place: int | None, other: Report | None = None) -> FlakeEvent:
    return FlakeEvent(
        platform=report.platform,
        variant=report.variant,
        test_id=test,
        sha=report.head_sha,
        place=place,
        kind=kind,
        report=report,
        other=other,
        run_id=report.run_id,
        run_attempt=report.run_attempt,
        job_name=report.job_name,
        at=report.received_at,
    )


def _place(sha: str) -> int | None:
    return Commit.objects.filter(sha=sha).values_list("position", flat=True).first() if sha else None


def _write_own(report: Report, seen: Opened | None) -> None:
    """What one report shows by itself."""
    FlakeEvent.objects.filter(report=report, other=None).delete()
    if seen is None:
        return
    place = _place(report.head_sha)
    events = [
        _event(report, test, kind, place)
        for kind, tests in ((FlakeKind.RERUN, seen.signs.flaky), (FlakeKind.EVIDENCE, seen.evidenced))
        for test in np.unique(tests)[:ROWS_MAX].tolist()
    ]
    FlakeEvent.objects.bulk_create(events, batch_size=_BATCH)


def _write_disagreements(report: Report, seen: Opened | None) -> list[int]:
    """What the reports of one commit show together: red in one of them, green in another. Returns which they are."""
    FlakeEvent.objects.filter(Q(report=report) | Q(other=report), other__isnull=False).delete()
    if not report.head_sha:
        return []
    same = counted().filter(of_platform(report.platform), variant=report.variant, head_sha=report.head_sha)
    reports = list(same.order_by("-received_at", "-pk")[:OF_COMMIT_MAX])[::-1]
    looks = [seen if seen is not None and other.pk == report.pk else Opened(other) for other in reports]
    FlakeEvent.objects.filter(report__in=reports, other__isnull=False).delete()
    place = _place(report.head_sha)
    events = [event for look in looks for event in _disagreements(look, looks, place)]
    FlakeEvent.objects.bulk_create(events, batch_size=_BATCH)
    return [other.pk for other in reports]


def _disagreements(look: Opened, looks: list[Opened], place: int | None) -> list[FlakeEvent]:
    """One event for each red test that another report of the commit contradicts."""
    report = look.report
    others = [other for other in looks if other.report.pk != report.pk]
    witnesses = [Witness(other.signs, _is_other_attempt(report, other.report)) for other in others]
    return [
        _event(report, test, kind, place, others[witness].report)
        for witness, kind, tests in contradicted(np.unique(look.signs.red)[:ROWS_MAX], witnesses)
        for test in tests.tolist()
    ]


def _is_other_attempt(report: Report, other: Report) -> bool:
    same_run = (report.repository_id, report.source_id, report.run_id)
    return same_run == (other.repository_id, other.source_id, other.run_id) and report.run_attempt != other.run_attempt


# --- streaks ------------------------------------------------------------------------------------------------------


def _streaks_of(report: Report) -> dict[int, streaks.Red]:
    """By test; what was red under a former name goes on under the new one."""
    rows = list(Streak.objects.filter(platform=report.platform, variant=report.variant).order_by("since_at", "pk"))
    newest = newest_names(row.test_id for row in rows)
    found: dict[int, streaks.Red] = {}
    for row in rows:
        red = streaks.Red(row.since_id, row.last_id, row.last_sha, row.runs, row.commits, row.since_at, row.last_at)
        found.setdefault(newest[row.test_id], red)
    return found


def _replay(report: Report) -> None:
    """Count streaks anew from the last reports, in the order in which they were received."""
    found: dict[int, streaks.Red] = {}
    for earlier in list(_of_place(report).order_by("-received_at", "-pk")[:REPLAYED])[::-1]:
        found = streaks.advanced(found, Opened(earlier).look(found))
    _store_streaks(report, found)


def _store_streaks(report: Report, found: dict[int, streaks.Red]) -> None:
    of_place = Streak.objects.filter(platform=report.platform, variant=report.variant)
    # Rows of former names: what goes on of them is in `found`, under the new one.
    of_place.filter(test__alias__isnull=False).delete()
    before = _streaks_of(report)
    ended = [test for test in before if test not in found]
    of_place.filter(test__in=ended).delete()
    rules = rule_versions.in_force(report.received_at)
    changed = [(test, red) for test, red in sorted(found.items()) if before.get(test) != red]
    rows = [
        Streak(
            platform=report.platform,
            variant=report.variant,
            test_id=test,
            since_id=red.since,
            last_id=red.last,
            last_sha=red.last_sha,
            runs=red.runs,
            commits=red.commits,
            since_at=red.since_at,
            last_at=red.last_at,
            is_raised=streaks.is_regression(red, rules),
        )
        for test, red in changed[:ROWS_MAX]
    ]
    columns = ["since", "last", "last_sha", "runs", "commits", "since_at", "last_at", "is_raised"]
    Streak.objects.bulk_create(
        rows,
        batch_size=_BATCH,
        update_conflicts=True,
        unique_fields=["platform", "variant", "test"],
        update_fields=columns,
    )
