"""Coverage: over whose names, what lowers it, when it is flagged; and the backlog."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.db import IntegrityError
from django.test import Client

from apps.core.clock import now
from apps.platforms.models import Platform, Repository
from apps.platforms.services import create_platform
from apps.results.coverage import RULES, count_coverage, is_drop
from apps.results.models import Coverage, Report
from apps.results.removal import remove_report
from tests.factories.listing import TESTS, member_of
from tests.factories.pages import Page
from tests.relay.downstream import Downstream, refusal
from tests.results.conftest import Reporting
from tests.results.reporter import ended, received, reported, upload
from tests.results.test_in_tree import COMMIT, pin, token

KESTREL, FALCON, OSPREY = "kestrel/torch", "falcon/torch", "osprey/torch"


def counted() -> int:
    return count_coverage(reports=10, now=now())


def coverage(report: Any) -> dict[str, Any]:
    body: dict[str, Any] = Client().get(f"/api/v1/reports/{report.public_id}/coverage/").json()
    body.pop("counted_at", None)
    return body


def says(basis: str, executed: int, missing: int, reference: Any = None, **classes: int) -> dict[str, Any]:
    skipped = sum(classes.values())
    about = {"basis": basis, "reference": str(reference.public_id) if reference else None, "classes": classes}
    numbers = {"names": executed + skipped + missing, "executed": executed, "skipped": skipped, "missing": missing}
    return about | numbers


def passing(*numbers: int) -> list[str]:
    return [ended(f"test_{number}", "passed") for number in numbers]


def flags(report: Any) -> list[str]:
    return list(Report.objects.get(pk=report.pk).flags)


def test_without_a_reference_the_names_are_those_seen_here(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2, FALCON: 2})
    reported(made[FALCON], *passing(90, 91))
    first = reported(made[KESTREL], *passing(1, 2), ended("test_3", "skipped", "No complex support"))
    reported(made[KESTREL], *passing(80), variant="slow")
    deselecting = reported(made[KESTREL], *passing(1), ended("test_4", "failed"))
    assert coverage(first) == says("", 0, 0) | dict.fromkeys(("basis", "names", "executed", "skipped", "missing"))
    assert (counted(), counted()) == (4, 0)
    assert coverage(first) == says("seen", 2, 0, unsupported=1)
    assert coverage(deselecting) == says("seen", 2, 2)
    assert (flags(first), flags(deselecting)) == ([], ["coverage_drop"])
    page = Page(Client().get(f"/reports/{deselecting.public_id}/skips/"))
    for words in ("2 of 4 executed, 50.0 %", "over the names that were reported here in the last 30 days"):
        assert words in page.text
    assert "Coverage dropped" in page.text
    whole = reported(made[KESTREL], *passing(1, 2, 3, 4))
    assert (counted(), flags(whole)) == (1, [])


@pytest.fixture
def upstream(downstream: Callable[..., Downstream]) -> Downstream:
    return downstream(settings.UPSTREAM_REPO)


def test_a_reference_that_comes_later_is_counted_over(reporting: Reporting, upstream: Downstream) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    create_platform(slug="cuda", name="CUDA", kind=Platform.Kind.IN_TREE, actor=TESTS, now=now())
    pin("cuda", device="cuda")
    cases = [*passing(1, 99), ended("test_2", "skipped", "Only runs on cuda"), ended("test_3", "skipped", "")]
    report = reported(made, *cases, head_sha=COMMIT)
    counted()
    assert coverage(report)["basis"] == "seen"
    run = {"token": token(upstream), "run_id": upstream.run_id}
    reference = reported(upstream, *passing(1, 2, 4), ended("test_3", "failed"), head_sha=COMMIT, **run)
    assert (counted(), counted(), counted()) == (1, 1, 0)
    assert coverage(report) == says("reference", 1, 1, reference, wrong_device=1, unexplained=1)
    assert Report.objects.get(pk=report.pk).coverage.skips == {"wrong_device": 1, "unexplained": 1}
    links = Page(Client().get(f"/reports/{report.public_id}/skips/")).links
    assert links.count(f"/reports/{reference.public_id}/") == 2


@pytest.mark.parametrize(("executed", "is_flagged"), [(98, False), (97, True), (100, False)])
def test_the_limit_of_a_drop(executed: int, is_flagged: bool) -> None:
    def of(executed: int, names: int = 100) -> Coverage:
        return Coverage(names=names, executed=executed, skipped=0, missing=names - executed)

    assert RULES[0].limit == 2
    assert is_drop(of(executed), of(100)) is is_flagged
    assert not is_drop(of(executed), None)
    assert not is_drop(of(0, 0), of(100))


def test_parts_must_sum_and_go_with_their_report(reporting: Reporting) -> None:
    report = reported(reporting({KESTREL: 2})[KESTREL], *passing(1))
    counted()
    with pytest.raises(IntegrityError, match="results_coverage_sums"):
        Coverage.objects.update(missing=5)
    remove_report(report=report, reason="a name", actor=TESTS, now=now())
    assert not Coverage.objects.exists()
    assert refusal(Client().get(f"/api/v1/reports/{report.public_id}/coverage/")) == (409, "report_removed", None)


def test_the_backlog_shows_what_is_left_by_platform_and_variant(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2, FALCON: 2, OSPREY: 1})
    assert "Nothing is reported yet" in Page(Client().get("/backlog/")).text
    reported(made[KESTREL], ended("test_1", "failed"))
    newest = reported(made[KESTREL], *passing(1), ended("test_2", "skipped", ""), ended("test_3", "failed"))
    reported(made[FALCON], ended("test_1", "skipped", "known failure"), ended("test_2", "failed"), variant="slow")
    reported(made[OSPREY], ended("test_1", "failed"))
    received(upload(made[KESTREL], report_key="unread"))
    counted()
    reported(made[FALCON], *passing(1))
    page = Page(Client().get("/backlog/"))
    assert [row[:5] for row in page.tables["left"]] == [
        ("torch default", "1", "0", "1", "66.7 % of 3 names"),
        ("torch slow", "1", "1", "0", "50.0 % of 2 names"),
        ("torch default", "0", "no data", "no data", "no data"),
    ]
    assert f"/reports/{newest.public_id}/skips/?class=unexplained" in page.links


@pytest.mark.parametrize("count", [1, 3])
def test_the_backlog_costs_one_query(reporting: Reporting, count: int, django_assert_num_queries: Any) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    for number in range(count):
        reported(made, *passing(1), variant=f"v{number}")
    counted()
    with django_assert_num_queries(1):
        assert Client().get("/backlog/").status_code == 200


def missing(report: Any, client: Client | None = None, **query: Any) -> Any:
    return (client or Client()).get(f"/api/v1/reports/{report.public_id}/missing/", query)


def test_the_names_that_are_missing_can_be_read(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    reported(made, *passing(1, 2, 3))
    gone = '<testsuite errors="1" failures="0" tests="3">' + passing(1)[0] + "</testsuite>"
    report = reported(made, gone, ended("test_2", "skipped"))
    waiting = Client().get(f"/reports/{report.public_id}/missing/")
    assert "Not counted yet" in Page(waiting).text
    assert refusal(missing(report)) == (409, "report_unready", None)
    counted()
    report.refresh_from_db()
    body = missing(report).json()
    rows = body.pop("results")
    assert body == {"basis": "seen", "reference": None, "missing": len(rows), "next": None, "previous": None}
    assert {(row["test"]["name"], row["how"]) for row in rows} >= {("test_3", "not there")}
    assert [row["how"] for row in rows if row["test"]["name"] != "test_3"] == ["lost"] * (len(rows) - 1)
    page = Page(Client().get(f"/reports/{report.public_id}/missing/"))
    assert ("test_3 test_foo · TestFoo", "not there") in page.tables["missing"]
    assert len(page.tables["missing"]) == len(rows)
    first = missing(report, limit=1).json()
    assert [first["results"], Client().get(first["next"]).json()["results"][:1]] == [rows[:1], rows[1:2]]


def test_names_that_only_private_reports_hold_are_counted_and_not_named(reporting: Reporting) -> None:
    made = reporting({KESTREL: 1})[KESTREL]
    reported(made, *passing(1, 2))
    Repository.objects.update(level=2)
    report = reported(made, *passing(1))
    counted()
    strangers = missing(report).json()
    assert (strangers["missing"], strangers["results"]) == (1, [])
    assert "0 that you may see" in Page(Client().get(f"/reports/{report.public_id}/missing/")).text
    member = Client()
    member.force_login(member_of(report.platform))
    assert [row["test"]["name"] for row in missing(report, member).json()["results"]] == ["test_2"]


@pytest.mark.parametrize("count", [1, 3])
def test_missing_names_cost_the_same_however_many(
    reporting: Reporting, count: int, django_assert_num_queries: Any
) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    reported(made, *passing(*range(count + 1)))
    report = reported(made, *passing(0))
    counted()
    with django_assert_num_queries(5):
        assert len(missing(report).json()["results"]) == count
    with django_assert_num_queries(5):
        assert Client().get(f"/reports/{report.public_id}/missing/").status_code == 200


def test_the_backlog_as_programs_read_it(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2, OSPREY: 1})
    reported(made[OSPREY], ended("test_x", "failed"))
    fails = [ended("test_1", "failed"), ended("test_2", "skipped", "Fails on NPU"), ended("test_3", "skipped", "eh")]
    report = reported(made[KESTREL], *fails)
    row = {
        "platform": report.platform.slug,
        "origin": KESTREL,
        "variant": "default",
        "report": str(report.public_id),
        "received_at": report.received_at.isoformat().replace("+00:00", "Z"),
        "failures": 1,
        "known_failures": None,
        "unexplained": None,
    } | dict.fromkeys(("names", "executed", "skipped", "missing"))
    about = {"days": 30, "next": None, "previous": None}
    assert Client().get("/api/v1/backlog/").json() == about | {"results": [row]}
    counted()
    now_known = row | {"known_failures": 1, "unexplained": 1, "names": 3, "executed": 1, "skipped": 2, "missing": 0}
    assert Client().get("/api/v1/backlog/").json() == about | {"results": [now_known]}
