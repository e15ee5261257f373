"""Uploaded bytes go after so many days; what was made of them stays, and the receipt says it."""

import datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError
from django.test import Client, override_settings

from apps.core.clock import now
from apps.core.wakeups import drain
from apps.results.models import Report, Upload
from apps.results.retention import forget_raw
from tests.factories.listing import member_of
from tests.factories.pages import Page
from tests.relay.downstream import refusal
from tests.results.conftest import Reporting
from tests.results.reporter import JUNIT, ended, junit, received, reported, upload

KESTREL = "kestrel/torch"
LATER = datetime.timedelta(days=91)


def raw(folder: Path) -> int:
    """How many files of uploaded bytes there are."""
    return len([path for path in (folder / "raw").rglob("*") if path.is_file()])


def aged(report: Report, **columns: Any) -> None:
    """It came so long ago."""
    Upload.objects.filter(report=report).update(received_at=now() - LATER, **columns)


def test_bytes_that_were_read_go_and_the_rest_stays(reporting: Reporting, storage_folder: Path) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    report, young = reported(made, ended("test_a", "failed", "boom")), reported(made, ended("test_b", "passed"))
    waiting = Report.objects.get(public_id=received(upload(made, b"<a/>", report_key="later")))
    member = Client()
    member.force_login(member_of(report.platform))
    digest = report.uploads.get().parts.get().sha256
    address = f"/reports/{report.public_id}/raw/{digest}/"
    assert member.get(address).getvalue() == junit(ended("test_a", "failed", "boom"))
    aged(report)
    aged(waiting)
    moment = now()
    with override_settings(RAW_DAYS=0):
        assert forget_raw(now=moment) == 0
    assert [forget_raw(now=moment), forget_raw(now=moment)] == [1, 0]
    drain()
    assert raw(storage_folder) == 2
    assert list(Upload.objects.exclude(raw_removed_at=None).values_list("report", flat=True)) == [report.pk]
    assert member.get(address).status_code == 404
    body = Client().get(f"/api/v1/reports/{report.public_id}/").json()
    assert datetime.datetime.fromisoformat(body["raw_removed_at"]) == moment
    assert (body["state"], body["counts"]["failed"]) == ("ready", 1)
    assert Client().get(f"/api/v1/reports/{young.public_id}/").json()["raw_removed_at"] is None
    assert "Its bytes are not kept any more, since" in Page(member.get(f"/reports/{report.public_id}/")).text
    findings = Client().get(f"/api/v1/reports/{report.public_id}/findings/").json()["results"]
    assert [finding["message"] for finding in findings] == ["boom"]


def test_bytes_that_another_upload_needs_stay_until_that_one_is_old(reporting: Reporting, storage_folder: Path) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    old, young = (reported(made, ended("test_a", "passed")) for _ in range(2))
    assert raw(storage_folder) == 1
    aged(old)
    assert forget_raw(now=now()) == 1
    drain()
    assert raw(storage_folder) == 1
    aged(young)
    assert forget_raw(now=now()) == 1
    drain()
    assert raw(storage_folder) == 0


def test_a_report_goes_whole_and_takes_no_shard_afterwards(reporting: Reporting, storage_folder: Path) -> None:
    made = reporting({KESTREL: 2})[KESTREL]
    key: dict[str, Any] = {"report_key": "k", "shards": 3}
    report = reported(made, ended("test_a", "passed"))
    Report.objects.filter(pk=report.pk).update(report_key="k", shards=3)
    received_first = Upload.objects.get(report=report)
    aged(report)
    received(upload(made, b"<a/>", shard=2, **key))
    assert forget_raw(now=now()) == 0
    Report.objects.filter(pk=report.pk).update(state="failed", failure="said", wanted=2, revision=1)
    assert forget_raw(now=now()) == 0
    aged(report)
    assert forget_raw(now=now()) == 1
    files = raw(storage_folder)
    late = upload(made, JUNIT, shard=3, **key)
    assert refusal(late) == (409, "report_conflict", "report_key")
    assert "their bytes are not kept any more" in late.json()["detail"]
    assert (raw(storage_folder), Report.objects.get(pk=report.pk).wanted) == (files, 2)
    again = upload(made, junit(ended("test_a", "passed")), shard=received_first.shard, **key)
    assert (again.status_code, again.json()["status"]) == (202, "duplicate")
    drain()
    assert raw(storage_folder) == 0


def test_bytes_do_not_go_before_they_came(reporting: Reporting) -> None:
    report = reported(reporting({KESTREL: 2})[KESTREL], ended("test_a", "passed"))
    with pytest.raises(IntegrityError, match="results_upload_raw_once"):
        report.uploads.update(raw_removed_at=report.received_at - LATER)
