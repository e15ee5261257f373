"""Accepted rows: raw figures stay, criteria read them less these rows, pages and API show both."""

import csv
import datetime
import io
from fractions import Fraction
from typing import Any

import pytest
from django.test import Client

from apps.appeals.enums import Outcome
from apps.core import clock
from apps.governance.facts import facts_of
from apps.platforms.models import Repository
from apps.results.input_rows import input_rows, recount
from apps.results.metrics import PULL_REQUESTS, Counted, figures
from apps.results.selectors import day_counts
from apps.results.set_aside import aside_of, recount_less
from tests.appeals.field import DAY, NOW, Field
from tests.factories.pages import Page

FIRST, TODAY = (NOW - 13 * DAY).date(), NOW.date()
METRICS = "/api/v1/repositories/zephyr/torch/metrics/"


def raw(field: Field) -> dict[datetime.date, Counted]:
    return day_counts(scope=PULL_REQUESTS, first=FIRST, last=TODAY)[field.zephyr.pk]


def read(field: Field, at: datetime.datetime = NOW) -> dict[str, tuple[Fraction | None, int]]:
    """What criteria read: (value, rows) of the figures that rows change."""
    counted = facts_of([Repository.objects.get()], now=at)[field.zephyr.pk].counted(14)
    of_jobs = figures(counted)
    return {
        name: (
            None if of_jobs[name].part is None else Fraction(of_jobs[name].part or 0, of_jobs[name].rows),
            of_jobs[name].rows,
        )
        for name in ("pass_rate", "first_attempt_pass_rate", "timeout_rate")
    }


def test_the_official_figure_stays_while_the_appeal_is_open(field: Field) -> None:
    before, criteria = raw(field), read(field)
    field.contests()
    assert (raw(field), read(field)) == (before, criteria)
    assert aside_of([field.zephyr], days=14, now=NOW) is None


def test_raw_is_unchanged_and_criteria_read_less_accepted_rows(field: Field) -> None:
    before = raw(field)
    assert read(field)["pass_rate"] == (Fraction(16, 20), 20)
    field.decides(field.contests(), Outcome.AMEND, *field.red[:2])
    field.counts()
    assert raw(field) == before
    assert read(field) == {
        "pass_rate": (Fraction(16, 18), 18),
        "first_attempt_pass_rate": (Fraction(16, 18), 18),
        "timeout_rate": (Fraction(1, 18), 18),
    }


def test_an_older_evaluation_stays_explained(field: Field) -> None:
    field.decides(field.contests(), at=NOW)
    earlier = NOW - datetime.timedelta(minutes=1)
    assert [read(field, at)["pass_rate"] for at in (earlier, NOW)] == [(Fraction(16, 20), 20), (Fraction(1), 16)]


def test_rows_that_were_kept_say_the_same(field: Field) -> None:
    field.decides(field.contests())
    kept = input_rows(repository_id=field.zephyr.pk, scope=PULL_REQUESTS, first=FIRST, last=TODAY, now=NOW)
    facts = facts_of([field.zephyr], now=NOW)[field.zephyr.pk]
    less = recount_less(kept, first=FIRST, last=TODAY)
    assert {day: figures(counted)["pass_rate"] for day, counted in less.items()} == {
        day: figures(counted)["pass_rate"] for day, counted in facts.days.items()
    }
    assert sum(counted.ended for counted in recount(kept, first=FIRST, last=TODAY).values()) == 20


def test_the_platform_and_evaluation_pages_show_both(field: Field, client: Client, settings: Any) -> None:
    settings.DEMO = True
    with clock.at(NOW):
        assert "set-aside" not in Page(client.get("/platforms/zephyr-torch/")).tables
        made = field.contests(field.red[0])
        field.decides(made)
        pages = [
            Page(client.get(path)) for path in ("/platforms/zephyr-torch/", "/repositories/zephyr/torch/evaluation/")
        ]
    for page in pages:
        assert page.tables["set-aside"] == [
            ("Job pass rate", "80.0 % of 20", "84.2 % of 19"),
            ("First-attempt pass rate", "80.0 % of 20", "84.2 % of 19"),
            ("Timeout rate", "5.0 % of 20", "5.3 % of 19"),
            ("Overrun rate", "0.0 % of 19", "0.0 % of 18"),
            ("Average queue time", "no data of 0", "no data of 0"),
        ]
        assert f"/appeals/{made.public_id}/" in page.links


def test_the_api_and_its_csv_show_both(field: Field, client: Client, settings: Any) -> None:
    settings.DEMO = True
    with clock.at(NOW):
        empty = client.get(METRICS).json()
        assert (empty["less_appeals"], empty["set_aside"]) == ({}, [])
        made = field.contests(field.red[0])
        field.decides(made)
        told: dict[str, Any] = client.get(METRICS).json()
        lines = list(csv.DictReader(io.StringIO(client.get(f"{METRICS}?format=csv").content.decode())))
    assert (told["figures"], told["pass_rate"]) == (empty["figures"], empty["pass_rate"])
    less = told["less_appeals"]["pass_rate"]
    assert (less["value"], less["rows"], less["part"]) == (16 / 19, 19, 16)
    (row,) = told["set_aside"]
    assert (row["job"], row["why"]) == (str(field.red[0].public_id), "infrastructure failed")
    assert row["url"].endswith(f"/appeals/{made.public_id}/")
    shown = {line["figure"]: line["rows"] for line in lines}
    assert (shown["pass_rate"], shown["pass_rate_less_appeals"]) == ("20", "19")


@pytest.mark.parametrize("rows", [1, 3])
def test_it_asks_as_often_for_one_row_as_for_three(field: Field, rows: int, django_assert_num_queries: Any) -> None:
    field.decides(field.contests(*field.red[:rows]))
    with django_assert_num_queries(4):
        found = aside_of([field.zephyr], days=14, now=NOW)
    assert found is not None
    assert len(found.rows) == rows
