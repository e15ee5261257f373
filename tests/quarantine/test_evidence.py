"""What reports show about flaky tests, from the bytes that a CI sends to rows of evidence."""

import datetime
import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from apps.core.models import Wakeup
from apps.platforms.models import Repository
from apps.quarantine import evidence
from apps.quarantine.models import FlakeEvent, Reading, Streak
from apps.results.aliases import alias_test
from apps.results.models import Report, Test
from apps.results.removal import remove_report
from apps.results.topics import REPORT_READY
from tests.factories.listing import TESTS, listed
from tests.factories.reports import in_tree, read_report
from tests.live import ClonedDatabase, Worker
from tests.results.conftest import Reporting
from tests.results.reporter import ended, failing, junit, passing, received, upload
from tests.results.test_report_path import wait_for

NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
RED, GREEN = failing("test_a"), passing("test_a")
SKIPPED = ended("test_a", "skipped")

pytestmark = pytest.mark.usefixtures("cloned_database", "storage_folder")


@pytest.fixture
def kestrel(cloned_database: ClonedDatabase, storage_folder: Path) -> Repository:
    return listed({"kestrel/torch": 2})["kestrel/torch"]


def came(repository: Repository, /, *cases: str, hour: float = 0, settle: bool = True, **fields: Any) -> Report:
    """A report that came so many hours after NOW; each is of another run unless `run_id` says which."""
    report = read_report(repository, junit(*cases), received_at=NOW + hour * HOUR, **fields)
    if settle:
        evidence.settle(report_pk=report.pk, now=NOW)
    return report


def settled(report: Report) -> None:
    evidence.settle(report_pk=report.pk, now=NOW)


def events() -> list[tuple[str, str, int, int | None]]:
    rows = FlakeEvent.objects.order_by("report_id", "test_id", "kind")
    return [(str(row.test.name), row.kind, row.report_id, row.other_id) for row in rows.select_related("test")]


def streaks() -> list[tuple[str, int, int, bool]]:
    rows = Streak.objects.select_related("test").order_by("test__name")
    return [(row.test.name, row.runs, row.commits, row.is_raised) for row in rows]


# --- in one report ------------------------------------------------------------------------------------------------


def test_a_test_that_passes_when_the_run_repeats_it_is_an_event(kestrel: Repository) -> None:
    report = came(kestrel, RED, GREEN, passing("test_b"))
    assert events() == [("test_a", "rerun", report.pk, None)]


def test_a_rerun_that_pytest_notes_in_the_case_is_an_event(kestrel: Repository) -> None:
    rerun = passing("test_a").removesuffix("/>") + '><flakyFailure message="no">no</flakyFailure></testcase>'
    report = came(kestrel, rerun)
    assert [event[:3] for event in events()] == [("test_a", "rerun", report.pk)]


def test_upstreams_numbers_in_a_skips_message_are_an_event_only_where_they_say_flaky(kestrel: Repository) -> None:
    said = "{&quot;flaky&quot;: %s, &quot;num_red&quot;: 2, &quot;num_green&quot;: 48}"
    report = came(kestrel, ended("test_a", "skipped", said % "true"), ended("test_b", "skipped", said % "false"))
    assert events() == [("test_a", "evidence", report.pk, None)]


def test_a_call_and_a_teardown_that_fail_both_are_no_flake(kestrel: Repository) -> None:
    teardown = passing("test_a").removesuffix("/>") + '><error message="teardown">no</error></testcase>'
    came(kestrel, RED, teardown)
    assert events() == []


def test_skipped_missing_and_expected_failures_are_no_evidence(kestrel: Repository) -> None:
    xfailed = passing("test_b").removesuffix("/>") + '><skipped type="pytest.xfail" message="known"/></testcase>'
    came(kestrel, RED, failing("test_b"), failing("test_c"))
    came(kestrel, SKIPPED, xfailed, passing("test_d"), hour=1)
    assert events() == []
    assert streaks() == [("test_a", 1, 1, False), ("test_b", 1, 1, False), ("test_c", 1, 1, False)]


# --- between reports of one commit --------------------------------------------------------------------------------


def test_two_attempts_of_a_run_that_disagree_are_an_event_of_the_red_one(kestrel: Repository) -> None:
    red = came(kestrel, RED, run_id="7")
    green = came(kestrel, GREEN, run_id="7", run_attempt=2, hour=1)
    assert events() == [("test_a", "attempts", red.pk, green.pk)]


def test_two_runs_of_a_commit_that_disagree_are_an_event_of_the_red_one(kestrel: Repository) -> None:
    green = came(kestrel, GREEN)
    red = came(kestrel, RED, hour=1)
    assert events() == [("test_a", "reports", red.pk, green.pk)]


def test_a_later_green_of_another_commit_is_no_event(kestrel: Repository) -> None:
    came(kestrel, RED)
    came(kestrel, GREEN, hour=1, head_sha="cd" * 20)
    assert events() == []


def test_a_commit_that_nobody_named_is_not_the_same_commit(kestrel: Repository) -> None:
    came(kestrel, RED, head_sha="")
    came(kestrel, GREEN, hour=1, head_sha="")
    assert events() == []


def test_variants_and_platforms_never_cross(cloned_database: ClonedDatabase, storage_folder: Path) -> None:
    repositories = listed({"kestrel/torch": 2, "merlin/torch": 2})
    came(repositories["kestrel/torch"], RED)
    came(repositories["kestrel/torch"], GREEN, hour=1, variant="dynamo")
    came(repositories["merlin/torch"], GREEN, hour=2)
    assert events() == []
    assert streaks() == [("test_a", 1, 1, False)]


def test_two_origins_of_one_platform_witness_for_each_other(kestrel: Repository) -> None:
    source = in_tree(kestrel.platform)
    red = came(kestrel, RED)
    green = came(kestrel, GREEN, hour=1, repository=None, source=source)
    assert events() == [("test_a", "reports", red.pk, green.pk)]


def test_a_renamed_test_is_one_test(kestrel: Repository) -> None:
    red = came(kestrel, failing("test_old"))
    green = came(kestrel, passing("test_new"), hour=1, settle=False)
    old, new = Test.objects.get(name="test_old"), Test.objects.get(name="test_new")
    alias_test(old=old, new=new, reason="renamed", actor=TESTS, now=NOW)
    settled(green)
    assert events() == [("test_new", "reports", red.pk, green.pk)]


# --- whatever the order -------------------------------------------------------------------------------------------


def everything() -> tuple[Any, ...]:
    rows = FlakeEvent.objects.values_list("report__report_key", "other__report_key", "test__name", "kind")
    readings = Reading.objects.values_list("report__report_key", "red", "turned", "usual", "is_incident")
    red = Streak.objects.values_list("test__name", "since__report_key", "last__report_key", "runs", "commits")
    marks = FlakeEvent.objects.values_list("report__report_key", "test__name", "is_in_incident")
    return sorted(rows, key=str), sorted(readings), sorted(red), sorted(marks)


def test_the_order_in_which_reports_are_read_does_not_matter(kestrel: Repository) -> None:
    dice, reports = random.Random(6), []
    hours = itertools.count()
    for commit in range(4):
        for run in range(3):
            bad = range(14) if (commit, run) == (2, 1) else [n for n in range(14) if dice.random() < 0.15]
            cases = [failing(f"test_{n}") if n in bad else passing(f"test_{n}") for n in range(14)]
            sha = f"{commit + 1:040x}"
            reports.append(came(kestrel, *cases, hour=next(hours), settle=False, head_sha=sha))
    for report in reports:
        settled(report)
    in_order = everything()
    assert len(in_order[0]) > 10
    assert any(mark for *_, mark in in_order[3])
    for seed in range(2):
        Reading.objects.all().delete()
        FlakeEvent.objects.all().delete()
        Streak.objects.all().delete()
        for report in random.Random(seed).sample(reports, len(reports)):
            settled(report)
        assert everything() == in_order


def test_reading_a_report_twice_changes_nothing(kestrel: Repository) -> None:
    red, green = came(kestrel, RED), came(kestrel, GREEN, hour=1)
    before = everything()
    settled(red)
    settled(green)
    assert everything() == before


# --- what does not count ------------------------------------------------------------------------------------------


def test_a_removed_reports_evidence_goes_and_another_witness_takes_its_place(kestrel: Repository) -> None:
    red = came(kestrel, RED)
    first = came(kestrel, GREEN, hour=1)
    second = came(kestrel, GREEN, hour=2)
    assert events() == [("test_a", "reports", red.pk, first.pk)]
    Wakeup.objects.all().delete()
    remove_report(report=first, reason="private", actor=TESTS, now=NOW)
    assert list(Wakeup.objects.filter(topic=REPORT_READY).values_list("key", flat=True)) == [str(first.pk)]
    settled(first)
    assert events() == [("test_a", "reports", red.pk, second.pk)]
    remove_report(report=red, reason="private", actor=TESTS, now=NOW)
    settled(red)
    assert (events(), streaks(), list(evidence.unsettled())) == ([], [], [])


def test_a_commit_that_upstream_does_not_know_is_no_evidence_once_it_is_known(kestrel: Repository) -> None:
    came(kestrel, RED)
    green = came(kestrel, GREEN, hour=1, flags=["claimed_commit"])
    assert len(events()) == 1
    Report.objects.filter(pk=green.pk).update(flags=["unknown_commit"])
    assert list(evidence.unsettled()) == [green]
    settled(green)
    assert (events(), list(evidence.unsettled())) == ([], [])


def test_a_held_report_is_no_evidence_until_somebody_accepts_its_owner(kestrel: Repository) -> None:
    red = came(kestrel, RED)
    held = came(kestrel, GREEN, hour=1, held_owner_id=4_711)
    assert (events(), list(evidence.unsettled())) == ([], [])
    Repository.objects.filter(pk=kestrel.pk).update(
        pin_source="github_api", github_id=1, github_owner_id=4_711, pinned_at=NOW
    )
    assert list(evidence.unsettled()) == [held]
    settled(held)
    assert events() == [("test_a", "reports", red.pk, held.pk)]


# --- incidents and streaks ----------------------------------------------------------------------------------------

MANY = range(12)


def run_of(kestrel: Repository, bad: Any, hour: int, **fields: Any) -> Report:
    cases = [failing(f"test_{n}") if n in bad else passing(f"test_{n}") for n in MANY]
    return came(kestrel, *cases, hour=hour, **{"head_sha": f"{hour + 1:040x}"} | fields)


def test_many_tests_that_turn_red_at_once_are_one_incident_and_no_flakes(kestrel: Repository) -> None:
    run_of(kestrel, [], 0)
    run_of(kestrel, [1], 1)
    bad = run_of(kestrel, MANY, 2)
    run_of(kestrel, [], 3, head_sha=bad.head_sha)
    readings = Reading.objects.order_by("report_id").values_list("turned", "usual", "is_incident")
    assert list(readings) == [(0, None, False), (1, None, False), (11, 1.0, True), (0, 6.0, False)]
    assert set(FlakeEvent.objects.values_list("is_in_incident", flat=True)) == {True}
    assert FlakeEvent.objects.count() == len(MANY)


def test_what_stays_red_does_not_turn_red_again(kestrel: Repository) -> None:
    for hour in range(3):
        run_of(kestrel, MANY, hour)
    assert list(Reading.objects.order_by("report_id").values_list("red", "turned", "is_incident")) == [
        (12, 12, True),
        (12, 0, False),
        (12, 0, False),
    ]


def test_a_second_attempt_is_held_against_the_run_before_and_not_the_first_attempt(kestrel: Repository) -> None:
    run_of(kestrel, [], 0)
    first = run_of(kestrel, MANY, 1)
    second = run_of(kestrel, MANY, 2, run_id=first.run_id, run_attempt=2, head_sha=first.head_sha)
    assert (second.reading.turned, second.reading.is_incident) == (12, True)


def test_red_in_five_runs_on_three_commits_is_a_regression_until_the_first_pass(kestrel: Repository) -> None:
    for hour, commit in enumerate((1, 1, 2, 2)):
        came(kestrel, RED, hour=hour, head_sha=f"{commit:040x}")
    came(kestrel, SKIPPED, hour=5, head_sha=f"{3:040x}")
    assert streaks() == [("test_a", 4, 2, False)]
    came(kestrel, RED, hour=6, head_sha=f"{3:040x}")
    assert streaks() == [("test_a", 5, 3, True)]
    came(kestrel, GREEN, hour=7, head_sha=f"{4:040x}")
    assert streaks() == []


def test_two_uploads_of_one_commit_become_evidence_by_wake_ups_alone(
    celery_worker_process: Worker, reporting: Reporting
) -> None:
    made = reporting({"kestrel/torch": 2})["kestrel/torch"]
    for run, case in (("71", RED), ("72", GREEN)):
        made.run_id = run
        received(upload(made, junit(case), run_id=run, report_key=run, head_sha="ab" * 20))
    wait_for(lambda: FlakeEvent.objects.exists())
    red, green = Report.objects.get(run_id="71"), Report.objects.get(run_id="72")
    assert events() == [("test_a", "reports", red.pk, green.pk)]
