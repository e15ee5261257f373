"""`/regressions/`: what fails always, from the bytes that a CI sends, and nothing of reports that are not public."""

import csv
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.platforms.models import Repository
from apps.quarantine.models import Quarantine, Streak
from apps.results.models import Report
from tests.factories import reports
from tests.factories.listing import listed, member_of
from tests.factories.pages import Page
from tests.factories.tests import catalogued
from tests.live import ClonedDatabase
from tests.quarantine.test_detection import detected, flaked, in_force, sha
from tests.quarantine.test_evidence import HOUR, NOW, came
from tests.results.reporter import failing, passing

LIST = "/api/v1/regressions/"


@pytest.fixture
def kestrel(cloned_database: ClonedDatabase, storage_folder: Path) -> Repository:
    return listed({"kestrel/torch": (2, {"oncalls": ["ada", "mona"]})})["kestrel/torch"]


def names(who: Any = None, **query: str) -> list[str]:
    client = Client()
    if who is not None:
        client.force_login(who)
    rows = client.get(LIST, query).json()["results"]
    shown = [row[0].split()[0] for row in Page(client.get("/regressions/", query)).tables.get("list", [])]
    assert shown == [row["name"] for row in rows]
    return shown


def test_what_fails_always_is_listed_until_it_passes(kestrel: Repository) -> None:
    for commit in range(1, 5):
        came(kestrel, failing("test_a"), passing("test_b"), head_sha=sha(commit), hour=commit)
    assert names() == []
    last = came(kestrel, failing("test_a"), passing("test_b"), head_sha=sha(5), hour=5)
    first = Report.objects.earliest("received_at")
    streak = Streak.objects.get()
    expected = {
        "platform": kestrel.platform.slug,
        "variant": "default",
        "test": streak.test_id,
        "file": "test_foo",
        "class_name": "TestFoo",
        "name": "test_a",
        "since_at": "2026-11-20T13:00:00Z",
        "first_sha": sha(1),
        "first_report": str(first.public_id),
        "last_at": "2026-11-20T17:00:00Z",
        "last_sha": sha(5),
        "last_report": str(last.public_id),
        "runs": 5,
        "commits": 5,
        "quarantine": None,
    }
    assert Client().get(LIST).json()["results"] == [expected]
    (line,) = csv.DictReader(Client().get(LIST, {"format": "csv"}).content.decode().splitlines())
    assert (line["name"], line["runs"], line["quarantine"]) == ("test_a", "5", "")
    page = Page(Client().get("/regressions/"))
    assert {f"/reports/{first.public_id}/", f"/reports/{last.public_id}/"} <= set(page.links)
    came(kestrel, passing("test_a"), head_sha=sha(6), hour=6)
    assert names() == []


def test_the_quarantine_that_it_ended_is_named(kestrel: Repository) -> None:
    for commit in (1, 2):
        flaked(kestrel, "test_a", commit=commit, hour=commit)
    detected(kestrel)
    in_force(kestrel, NOW + 2 * HOUR)
    for commit in range(3, 8):
        came(kestrel, failing("test_a"), head_sha=sha(commit), hour=commit)
    assert Client().get(LIST).json()["results"][0]["quarantine"] is None
    detected(kestrel)
    made = Quarantine.objects.get()
    assert Client().get(LIST).json()["results"][0]["quarantine"] == str(made.public_id)
    assert f"/quarantines/{made.public_id}/" in Page(Client().get("/regressions/")).links
    page = Page(Client().get(f"/quarantines/{made.public_id}/"))
    assert "A regression: it fails always" in page.text
    assert "/regressions/" in page.links


def raised(repository: Repository, name: str, level: int) -> Streak:
    first, last = (reports.report(repository, failed=1, level=level) for _ in range(2))
    return Streak.objects.create(
        platform=repository.platform,
        variant="default",
        test=catalogued(name),
        since=first,
        last=last,
        last_sha=last.head_sha,
        runs=5,
        commits=5,
        since_at=first.received_at,
        last_at=last.received_at,
        is_raised=True,
    )


@pytest.mark.django_db
def test_what_comes_of_reports_below_l2_is_its_members_alone() -> None:
    both = listed({"kestrel/torch": 1, "osprey/torch": 2})
    secret, open_one = raised(both["kestrel/torch"], "test_secret", 1), raised(both["osprey/torch"], "test_open", 2)
    partly = raised(both["osprey/torch"], "test_partly", 2)
    Report.objects.filter(pk=partly.since_id).update(level=1)
    assert names() == ["test_open"]
    assert set(names(member_of(secret.platform))) == {"test_open", "test_secret"}
    assert set(names(member_of(open_one.platform))) == {"test_open", "test_partly"}
    assert names(platform=secret.platform.slug) == []
    assert names(platform=open_one.platform.slug) == ["test_open"]
    Streak.objects.update(is_raised=False)
    assert names() == []


@pytest.mark.django_db
@pytest.mark.parametrize("count", [1, 3])
def test_the_list_costs_the_same_however_long(count: int, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    of = listed({"osprey/torch": 2})["osprey/torch"]
    for number in range(count):
        raised(of, f"test_{number}", 2)
    client = Client()
    with django_assert_num_queries(3):
        assert len(Page(client.get("/regressions/")).tables["list"]) == count
    with django_assert_num_queries(1):
        assert len(client.get(LIST).json()["results"]) == count
