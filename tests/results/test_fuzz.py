"""Damaged files through the front door, with a real worker behind it: no answer is a 500, and the worker lives.

`ACCELHUB_FUZZ_UPLOADS` says how many files are damaged anew, beside the corpus as it is.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from apps.core.limits import Limit
from apps.results import quotas
from apps.results.models import Report
from tests.factories.listing import listed
from tests.live import ClonedDatabase, Worker
from tests.relay.downstream import Downstream
from tests.relay.test_callback import KESTREL
from tests.results.formats.test_damage import ARCHIVES, FILES, cuts, damaged, damages
from tests.results.reporter import upload
from tests.results.test_report_path import wait_for

UPLOADS = int(os.environ.get("ACCELHUB_FUZZ_UPLOADS", "40"))
ROOMS = ("", "findings/", "skips/")
SOURCES = [*FILES.values(), *ARCHIVES]
# So many are sent before the worker is waited for.
AT_ONCE = 40


def test_whatever_is_uploaded_gets_an_end_and_no_worker_dies(
    storage_folder: Path,
    cloned_database: ClonedDatabase,
    celery_worker_process: Worker,
    downstream: Callable[..., Downstream],
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quotas, "RATE", Limit("report", 10**9, "uploads of this repository"))
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    waiting: list[str] = []

    def send(data: bytes, key: str) -> None:
        answer = upload(made, data, report_key=key)
        assert answer.status_code == 202, answer.content
        waiting.append(answer.json()["id"])
        if len(waiting) == AT_ONCE:
            look()

    def look() -> None:
        names = waiting.copy()
        waiting.clear()
        mine = Report.objects.filter(public_id__in=names)
        wait_for(lambda: mine.filter(state__in=("ready", "failed")).count() == len(set(names)))
        assert not mine.filter(failure__contains="The hub failed").exists()
        assert celery_worker_process.process.poll() is None
        for name in names:
            for address in (f"/reports/{name}/", f"/api/v1/reports/{name}/"):
                assert {client.get(address + room).status_code for room in ROOMS} <= {200, 409}

    @settings(
        max_examples=max(UPLOADS, 1),
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],
    )
    @given(st.sampled_from(SOURCES), damages, cuts)
    def fuzz(data: bytes, damage: list[tuple[float, int, bytes]], cut: float | None) -> None:
        send(damaged(data, damage, cut), f"fuzz {len(waiting)} {Report.objects.count()}")

    for number, data in enumerate(SOURCES):
        send(data, f"corpus {number}")
    fuzz()
    look()
    ends = Report.objects.values_list("state", flat=True)
    assert (len(ends) >= len(SOURCES), set(ends)) == (True, {"ready", "failed"})
