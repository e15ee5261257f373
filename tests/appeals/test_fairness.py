"""`/fairness/`: what was decided about each platform, by hand; nobody hidden, nothing invented."""

import csv
import datetime
import io
from typing import Any

import pytest
from django.test import Client

from apps.accounts.policy import Role
from apps.appeals.enums import Outcome
from apps.appeals.fairness import COLUMNS, Cell, Link, rows
from apps.governance.services import accept_proposal
from apps.governance.waiving import grant_waiver, withdraw_waiver
from apps.levels.promoting import decline, object_to
from tests.appeals.field import DAY, HOUR, NOW, Field
from tests.factories.listing import listed, user
from tests.factories.pages import Page, problem
from tests.factories.promotions import maintainer, promotion
from tests.factories.proposals import proposal

TENURE = "L3.rise.tenure_days"


def told(days: int = 30, at: datetime.datetime = NOW) -> dict[str, dict[str, Cell]]:
    return {row.platform.slug: {column.key: cell for column, cell in row.cells} for row in rows(days=days, now=at)}


def values(cells: dict[str, Cell]) -> dict[str, int | None]:
    return {key: cell.value for key, cell in cells.items()}


NOTHING: dict[str, int | None] = {column.key: 0 if column.unit == "count" else None for column in COLUMNS}


@pytest.fixture
def fen(field: Field) -> Any:
    return listed({"zephyr/torch": 3, "fen/torch": 2}, now=NOW - 40 * DAY)["fen/torch"]


def test_every_platform_stands_there_by_name(field: Field, fen: Any) -> None:
    listed({"zephyr/torch": 3, "fen/torch": 2, "alder/torch": 1, "fen/probe": 2}, now=NOW - 40 * DAY)
    fen.platform.repositories.filter(full_name="fen/probe").update(is_probe=True)
    type(fen).objects.filter(full_name="fen/probe").update(is_probe=True)
    found = told()
    assert sorted(found) == ["alder-torch", "fen-torch", "zephyr-torch"]
    assert values(found["alder-torch"]) == NOTHING


def test_what_was_decided_is_counted_with_its_rows(field: Field, fen: Any) -> None:
    bob = user(Role.MAINTAINER, username="bob")
    grant: dict[str, Any] = {"criterion": TENURE, "reason": "x", "until_at": NOW + 30 * DAY, "by": bob}
    grant_waiver(repository=field.zephyr, now=NOW - 2 * DAY, **grant)
    old = grant_waiver(repository=fen, now=NOW - 35 * DAY, **grant)
    lowered = field.lowers(bob, at=NOW - DAY)
    field.decides(field.contests(field.red[0], at=NOW - 3 * HOUR), Outcome.UPHOLD, at=NOW - 2 * HOUR)
    field.decides(field.contests_decision(lowered, at=NOW - 6 * HOUR), at=NOW - HOUR)
    field.contests(field.red[1], at=NOW - HOUR)
    zephyr, other = (told()[slug] for slug in ("zephyr-torch", "fen-torch"))
    assert values(zephyr) == {
        "decisions": 3,
        "waivers_granted": 1,
        "waivers_holding": 1,
        "proposals": 0,
        "proposal_seconds": None,
        "promotions": 0,
        "promotion_seconds": None,
        "objections": 0,
        "appeals": 3,
        "appeal_seconds": 3_600,
        "overrides": 0,
    }
    assert (zephyr["decisions"].detail, zephyr["appeals"].detail, zephyr["appeal_seconds"].detail) == (
        "Level changed 2, Waiver granted 1",
        "open 1, overturned 1, upheld 1",
        "of 2",
    )
    assert [link.href for link in zephyr["decisions"].links] == ["/decisions/?about=zephyr%2Ftorch&since=2026-10-21"]
    assert values(other) == NOTHING | {"waivers_holding": 1}
    withdraw_waiver(waiver=old, reason="over", by=bob, now=NOW)
    assert told()["fen-torch"]["waivers_holding"] == Cell(0)
    assert told(90)["fen-torch"]["waivers_granted"].value == 1


def test_the_time_to_answer_a_proposal_is_the_median_of_its_submissions(field: Field) -> None:
    made = proposal("alder/torch")
    at = made.submitted_at + datetime.timedelta(hours=5)
    accept_proposal(proposal=made, reason="good", expected_revision=1, by=field.ada, now=at)
    cells = told(at=at)[made.platform.slug if made.platform else "alder-torch"]
    assert (cells["proposals"].value, cells["proposals"].detail) == (1, "accepted 1")
    assert (cells["proposal_seconds"].value, cells["proposal_seconds"].detail) == (5 * 3_600, "of 1")


def test_promotions_their_time_and_objections_are_counted_with_their_rows(db: Any) -> None:
    made = promotion()
    bob, at = maintainer(), made.opened_at
    object_to(promotion=made, criterion="L3.rise.runs", words="few", expected_revision=1, by=bob, now=at)
    decline(promotion=made, reason="not yet", expected_revision=2, by=bob, now=at + 2 * HOUR)
    cells = told(at=at + 3 * HOUR)["zephyr-torch"]
    link = Link("1 of zephyr/torch", "/promotions/?repository=zephyr%2Ftorch")
    assert cells["promotions"] == Cell(1, "declined 1", (link,))
    assert cells["objections"] == Cell(1, links=(link,))
    assert (cells["promotion_seconds"].value, cells["promotion_seconds"].detail) == (7_200, "of 1")


def test_the_page_the_api_and_its_csv_say_the_same(field: Field, client: Client) -> None:
    page = Page(client.get("/fairness/?days=365"))
    (row,) = page.tables["list"]
    assert (row[0], len(row)) == ("torch", 1 + sum(not column.under for column in COLUMNS))
    # A time beneath its count, where there is one: nothing was decided, so none.
    assert row[3] == "0"
    assert list(page.facts["how"]) == [column.title for column in COLUMNS]
    told = client.get("/api/v1/fairness/?days=365").json()
    assert (told["days"], [one["key"] for one in told["columns"]]) == (365, list(NOTHING))
    (line,) = csv.DictReader(io.StringIO(client.get("/api/v1/fairness/?days=365&format=csv").content.decode()))
    assert {key: line[key] for key in NOTHING} == {
        key: "" if told["results"][0][key] is None else str(told["results"][0][key]) for key in NOTHING
    }
    assert problem(client.get("/api/v1/fairness/?days=7"))[2]["field"] == "days"
    assert client.get("/fairness/?days=x").status_code == 200


@pytest.mark.parametrize("platforms", [1, 3])
@pytest.mark.parametrize("path", ["/fairness/", "/api/v1/fairness/"])
def test_it_asks_as_often_for_one_platform_as_for_three(
    field: Field, client: Client, platforms: int, path: str, django_assert_num_queries: Any
) -> None:
    levels: dict[str, Any] = {f"zephyr{number}/torch": 2 for number in range(platforms)}
    listed(levels | {"zephyr/torch": 3}, now=NOW)
    field.contests(field.red[0])
    with django_assert_num_queries(13):
        client.get(path)
