"""Where evidence is shown: strips on the list and on a record, and the sections of a test's page."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from pytest_django import DjangoAssertNumQueries

from apps.core.charts import run_strip
from apps.core.clock import now
from apps.platforms.models import Repository
from apps.quarantine import services
from apps.quarantine.enums import Verb
from apps.quarantine.models import Streak
from apps.quarantine.strips import RUNS, strips_of
from apps.results.aliases import alias_test
from apps.results.models import Report, Test
from apps.results.removal import remove_report
from tests.factories.listing import TESTS, listed, member_of
from tests.factories.pages import Page
from tests.live import ClonedDatabase
from tests.quarantine.test_evidence import GREEN, HOUR, NOW, RED, SKIPPED, came
from tests.quarantine.test_pages import page, signed_in
from tests.quarantine.test_services import in_force, proposed
from tests.results.reporter import failing, passing

pytestmark = pytest.mark.usefixtures("cloned_database", "storage_folder")


@pytest.fixture
def kestrel(cloned_database: ClonedDatabase, storage_folder: Path) -> Repository:
    return listed({"kestrel/torch": 2, "osprey/torch": 1})["kestrel/torch"]


def of(name: str) -> Test:
    return Test.objects.get(name=name)


def stamp(report: Report) -> str:
    return f"{report.received_at:%Y-%m-%d %H:%M} UTC"


def words(made: Any, who: Any = None) -> list[str]:
    return [cell.word for cell in strips_of([made], who or AnonymousUser())[made.pk]]


def test_a_strip_is_the_newest_runs_that_name_the_test_oldest_first(kestrel: Repository) -> None:
    first = came(kestrel, RED, head_sha="aa" * 20)
    second = came(kestrel, SKIPPED, hour=1)
    came(kestrel, passing("test_other"), hour=2)
    came(kestrel, GREEN, hour=3, variant="slow")
    third = came(kestrel, RED, GREEN, hour=4)
    made = in_force(kestrel.platform, of("test_a"), at=now())
    strip = [
        (stamp(first), "bad", "failed"),
        (stamp(second), "info", "skipped"),
        (stamp(third), "warn", "flaky"),
    ]
    assert run_strip(strip, "test_a") in page("/quarantines/").html
    shown = page(f"/quarantines/{made.public_id}/")
    assert run_strip(strip, services.label_of(made)) in shown.html
    assert [row[:3] for row in shown.tables["runs"]] == [
        ("test-ops", "▲ flaky", "abababa"),
        ("test-ops", "○ skipped", "abababa"),
        ("test-ops", "■ failed", "aaaaaaa"),
    ]


def test_of_several_tests_the_worst_is_shown_with_its_count(kestrel: Repository) -> None:
    came(kestrel, RED, failing("test_b"), passing("test_c"))
    came(kestrel, GREEN, passing("test_b"), hour=1)
    came(kestrel, RED, hour=2)
    made = in_force(kestrel.platform, of("test_a"), of("test_b"), of("test_c"), at=now())
    assert words(made) == ["2 of 3 failed", "2 of 2 passed", "failed"]


def test_a_strip_follows_a_rename_and_leaves_out_what_is_gone(kestrel: Repository) -> None:
    came(kestrel, failing("test_old"))
    gone = came(kestrel, failing("test_old"), hour=1)
    came(kestrel, passing("test_new"), hour=2)
    made = in_force(kestrel.platform, of("test_old"), at=now())
    alias_test(old=of("test_old"), new=of("test_new"), reason="renamed", actor=TESTS, now=now())
    remove_report(report=gone, reason="a customer's name", actor=TESTS, now=now())
    assert words(made) == ["failed", "passed"]


def test_a_strip_has_an_end(kestrel: Repository) -> None:
    for hour in range(RUNS + 2):
        came(kestrel, GREEN if hour > 1 else RED, hour=hour, settle=False)
    assert words(in_force(kestrel.platform, of("test_a"), at=now())) == ["passed"] * RUNS


def test_of_reports_below_l2_strangers_see_no_strip(kestrel: Repository) -> None:
    came(kestrel, RED, level=1)
    made = in_force(kestrel.platform, of("test_a"), at=now())
    assert (words(made), words(made, member_of(kestrel.platform))) == ([], ["failed"])
    assert "no run" in page("/quarantines/").text


@pytest.mark.parametrize("count", [1, 3])
def test_strips_cost_the_same_however_many_rows_and_places(
    kestrel: Repository, count: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(count):
        came(kestrel, failing(f"test_{number}"), hour=number, variant=f"v{number}")
        in_force(kestrel.platform, of(f"test_{number}"), variant=f"v{number}", at=now())
    client = signed_in()
    with django_assert_num_queries(6):
        answer = client.get("/quarantines/")
    assert Page(answer).html.count("1 run") == count


def test_a_tests_page_shows_its_flakes_quarantines_and_streaks(kestrel: Repository) -> None:
    flaky = came(kestrel, RED, GREEN, head_sha="aa" * 20)
    red = came(kestrel, RED, hour=1, head_sha="bb" * 20)
    newest = came(kestrel, RED, hour=2, head_sha="cc" * 20)
    before = in_force(kestrel.platform, of("test_a"), at=NOW)
    services.end(quarantine=before, verb=Verb.BREAK, reason="fails always", actor=TESTS, now=NOW + 24 * HOUR)
    again = proposed(kestrel.platform, of("test_a"), at=now())
    shown = page(f"/tests/{of('test_a').pk}/")
    name = kestrel.platform.name
    assert shown.tables["quarantines"] == [
        ("test_a timing or ordering", name, "◔ Proposed", "ada", "not so far"),
        ("test_a timing or ordering", name, "■ Ended: fails always", "ada", "2026-11-20 to 2026-11-21"),
    ]
    assert [row[:4] for row in shown.tables["streaks"]] == [(name, "first, newest", "2", "2")]
    assert [row[:4] for row in shown.tables["flakes"]] == [
        (f"{name} test-ops", "red, then passed when the same run repeated it", "red", "aaaaaaa")
    ]
    links = [f"/quarantines/{one.public_id}/" for one in (again, before)]
    links += [f"/reports/{one.public_id}/" for one in (red, newest, flaky)]
    assert set(links) <= set(shown.links)
    Streak.objects.update(is_raised=True)
    assert "■ regression" in page(f"/tests/{of('test_a').pk}/").text


def test_a_tests_page_says_that_nothing_is_known(kestrel: Repository) -> None:
    came(kestrel, GREEN)
    shown = page(f"/tests/{of('test_a').pk}/")
    assert "No flake, no quarantine and no row of red runs of it is known on this variant." in shown.text
    assert [name for name in ("quarantines", "streaks", "flakes") if name in shown.tables] == []


def test_a_tests_page_hides_what_belongs_to_a_platform_below_l2(kestrel: Repository) -> None:
    osprey = Repository.objects.get(full_name="osprey/torch")
    came(kestrel, GREEN)
    came(osprey, RED, GREEN, hour=1)
    came(osprey, RED, hour=2)
    in_force(osprey.platform, of("test_a"), at=now())
    seen = {}
    for who, person in (("visitor", None), ("member", member_of(osprey.platform))):
        tables = page(f"/tests/{of('test_a').pk}/", person).tables
        seen[who] = [name for name in ("quarantines", "streaks", "flakes") if name in tables]
    assert seen == {"visitor": [], "member": ["quarantines", "streaks", "flakes"]}
