"""A report's outcomes and the catalogue's part of it, saved by whoever may see it, and joined by any reader."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.files.storage import default_storage
from django.test import Client

from apps.core.clock import now
from apps.results import open_data
from apps.results.models import PublicTest, Report
from apps.results.public_names import publish
from apps.results.removal import remove_report
from tests.factories.listing import TESTS, member_of
from tests.factories.pages import Page
from tests.relay.downstream import refusal
from tests.results.conftest import Reporting
from tests.results.reporter import ended, received, reported, upload

KESTREL, OSPREY = "kestrel/torch", "osprey/torch"
FILES = ("outcomes", "tests", "reasons")


def answer_of(report: Any, what: str, client: Client | None = None) -> Any:
    return (client or Client()).get(f"/api/v1/reports/{report.public_id}/{what}.parquet")


def table_of(report: Any, what: str) -> pa.Table:
    answer = answer_of(report, what)
    assert (answer.status_code, answer.headers["Content-Type"], answer.headers["Content-Disposition"]) == (
        200,
        "application/vnd.apache.parquet",
        f'attachment; filename="{report.public_id}-1-{what}.parquet"',
    )
    return pq.read_table(io.BytesIO(answer.getvalue()))


def test_outcomes_names_and_reasons_are_joined_as_they_lie(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    reported(made, ended("test_other", "skipped", "another report's"))
    skips = [ended("test_b", "skipped", "Only runs on cuda"), ended("test_c", "skipped", "because")]
    report = reported(made, ended("test_a", "failed", "boom"), *skips)
    outcomes, tests, reasons = (table_of(report, what) for what in FILES)
    joined = outcomes.join(tests, "test").join(reasons, "reason").sort_by("name")
    assert joined.select(["file", "class_name", "name", "outcome", "ms", "text", "class"]).to_pylist() == [
        dict(zip(("file", "class_name", "name", "outcome", "ms", "text", "class"), row, strict=True))
        for row in (
            ("test_foo", "TestFoo", "test_a", 1, 100, None, None),
            ("test_foo", "TestFoo", "test_b", 3, 100, "Only runs on cuda", "wrong_device"),
            ("test_foo", "TestFoo", "test_c", 3, 100, "because", "unexplained"),
        )
    ]
    assert (tests.num_rows, reasons.num_rows) == (3, 2)
    links = Page(Client().get(f"/reports/{report.public_id}/")).links
    assert [link for link in links if link.endswith(".parquet")] == [
        f"/api/v1/reports/{report.public_id}/{what}.parquet" for what in FILES
    ]


def test_a_report_without_a_test_or_a_skip_has_empty_tables(reporting: Reporting) -> None:
    report = reported(reporting({KESTREL: 2})[KESTREL])
    assert [(table_of(report, what).num_rows, table_of(report, what).column_names) for what in FILES[1:]] == [
        (0, open_data.TESTS.names),
        (0, open_data.REASONS.names),
    ]


def test_a_file_of_many_pieces_is_one_file(reporting: Reporting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_data, "ROWS_AT_ONCE", 7)
    report = reported(reporting({KESTREL: 2})[KESTREL], *(ended(f"test_{number}", "passed") for number in range(50)))
    pieces = list(open_data.tests_of(report))
    assert len(pieces) == 9
    read = pq.ParquetFile(io.BytesIO(b"".join(pieces)))
    assert (read.num_row_groups, sorted(read.read()["name"].to_pylist())) == (
        8,
        sorted(f"test_{number}" for number in range(50)),
    )


def test_what_is_private_or_gone_is_not_given(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2, OSPREY: 1})
    private = reported(made[OSPREY], ended("test_secret", "failed"))
    member = Client()
    member.force_login(member_of(private.platform))
    assert [answer_of(private, what).status_code for what in FILES] == [404] * 3
    given = [answer_of(private, what, member) for what in FILES]
    assert [(answer.status_code, answer.getvalue()[:4]) for answer in given] == [(200, b"PAR1")] * 3
    given[0].close()
    waiting = Report.objects.get(public_id=received(upload(made[KESTREL], report_key="later")))
    shown = reported(made[KESTREL], ended("test_a", "passed"))
    for report in (waiting, shown):
        default_storage.delete(report.outcomes_name or "none")
        assert [refusal(answer_of(report, what))[:2] for what in FILES] == [(409, "report_unready")] * 3


def test_a_report_is_taken_down_whatever_became_of_its_file(reporting: Reporting) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    gone, _ = (reported(made, ended(name, "passed")) for name in ("test_gone", "test_kept"))
    assert publish(reports=9) == 2
    default_storage.delete(gone.outcomes_name)
    remove_report(report=gone, reason="a name", actor=TESTS, now=now())
    assert PublicTest.objects.count() == 0
    assert (publish(reports=9), list(PublicTest.objects.values_list("test__name", flat=True))) == (1, ["test_kept"])
    assert [refusal(answer_of(gone, what))[:2] for what in FILES] == [(409, "report_removed")] * 3
