"""What a quarantine does to results: red is listed apart, and everything still counts as it was."""

from typing import Any

from django.conf import settings
from django.test import Client

from apps.core.clock import now
from apps.platforms.models import Repository
from apps.quarantine.models import Quarantine
from apps.results.models import Report, Test
from tests.factories.pages import Page
from tests.quarantine.test_services import in_force
from tests.relay.downstream import Downstream
from tests.results.conftest import Reporting
from tests.results.reporter import ended, reported

RED = [ended("test_a", "failed", "races"), ended("test_b", "failed", "wrong"), ended("test_c", "failed", "gone")]


def quarantined(reporting: Reporting) -> tuple[Downstream, Quarantine]:
    """test_a and test_c, which were red before."""
    downstream = reporting({"kestrel/torch": 2})["kestrel/torch"]
    reported(downstream, *RED)
    tests = Test.objects.filter(name__in=["test_a", "test_c"])
    return downstream, in_force(Repository.objects.get().platform, *tests, at=now())


def api(report: Report, room: str = "", **query: Any) -> Any:
    return Client().get(f"/api/v1/reports/{report.public_id}/{room}", query).json()


def test_red_in_quarantine_is_listed_apart_and_counted_all_the_same(reporting: Reporting) -> None:
    downstream, made = quarantined(reporting)
    before = Report.objects.get()
    report = reported(downstream, *RED, ended("test_d", "passed"))
    rows = api(report, "findings/")["results"]
    assert made.expires_at is not None
    until = made.expires_at.isoformat().replace("+00:00", "Z")
    link = {"url": f"{settings.BASE_URL}/quarantines/{made.public_id}/", "until": until}
    seen = {row["test"]["name"]: row["quarantined"] for row in rows}
    assert seen == {"test_a": link, "test_b": None, "test_c": link}
    assert [row["quarantined"] for row in api(before, "findings/")["results"]] == [None] * 3
    receipt = api(report)
    assert (receipt["counts"]["failed"], receipt["quarantined"]) == (3, 2)
    assert api(before)["quarantined"] == 0

    def names(room: str = "findings/", **query: Any) -> list[str]:
        return [row["test"]["name"] for row in api(report, room, **query)["results"]]

    assert names(quarantined="yes") == ["test_a", "test_c"]
    assert names(quarantined="no") == ["test_b"]
    assert names(quarantined="yes", outcome="lost") == []
    assert api(report, "findings/", quarantined="maybe")["field"] == "quarantined"


def test_pages_say_what_stands_in_quarantine_until_when(reporting: Reporting) -> None:
    downstream, made = quarantined(reporting)
    before = Report.objects.get()
    report = reported(downstream, ended("test_a", "failed", "races"), ended("test_b", "failed", "wrong"))
    until = f"{made.expires_at:%Y-%m-%d}"
    page = Page(Client().get(f"/reports/{report.public_id}/findings/"))
    assert [row[1] for row in page.tables["findings-head"]] == [f"■ failed in quarantine until {until}", "■ failed"]
    receipt = Page(Client().get(f"/reports/{report.public_id}/"))
    assert "1 of the red is in quarantine: listed apart, and counted here all the same." in receipt.text
    pair = {"base": before.public_id, "head": report.public_id}
    rows = Client().get("/api/v1/compare/", pair).json()["results"]
    assert [(row["test"]["name"], row["change"], row["quarantined"] is None) for row in rows] == [
        ("test_a", "still_red", False),
        ("test_b", "still_red", True),
        ("test_c", "silenced", True),
    ]
    compared = Page(Client().get("/compare/", pair))
    assert f"in quarantine until {until}" in compared.text


def test_a_quarantined_test_that_is_flaky_or_passes_is_not_listed_apart(reporting: Reporting) -> None:
    downstream, _ = quarantined(reporting)
    report = reported(downstream, ended("test_a", "passed"), ended("test_b", "failed", "wrong"))
    assert api(report)["quarantined"] == 0
    assert [row["quarantined"] for row in api(report, "findings/")["results"]] == [None]
