"""A worker that is killed in the middle of a report is replaced by another without a trace."""

import datetime
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from accelhub import processes
from accelhub.env import BASE_DIR
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.core.wakeups import drain
from apps.results import leases
from apps.results.models import Finding, Report, ReportFile
from tests.factories.listing import listed
from tests.live import READY_SECONDS, ClonedDatabase
from tests.relay.downstream import Downstream
from tests.relay.test_callback import KESTREL
from tests.results.reporter import failing, junit, passing, received, upload

TESTS, FAILED = 40_000, 40
WORKER = "-m celery --app accelhub worker --pool=prefork --concurrency=1 --queues=heavy --loglevel=warning"


def start(database: ClonedDatabase) -> "subprocess.Popen[bytes]":
    command = [sys.executable, *WORKER.split(), "--without-gossip", "--without-mingle"]
    return processes.spawn(command, cwd=BASE_DIR, env=database.environment)


def wait_for(state: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while Report.objects.get().state != state:
        if time.monotonic() > deadline:
            pytest.fail(f"the report is {Report.objects.get().state}, not {state}", pytrace=False)
        time.sleep(0.01)


def test_a_killed_worker_is_replaced_without_a_trace(
    cloned_database: ClonedDatabase, storage_folder: Path, downstream: Callable[..., Downstream], client: Client
) -> None:
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    cases = [failing(f"test_{n}") if n % 1000 == 0 else passing(f"test_{n}") for n in range(TESTS)]
    received(upload(made, junit(*cases)))
    first = start(cloned_database)
    try:
        drain()
        wait_for("parsing")
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert Report.objects.get().state == "parsing"
    # Nobody else takes it before its lease has run out; then the sweep wakes it.
    assert leases.sweep(now=now()) == 0
    Report.objects.update(lease_until=now() - datetime.timedelta(seconds=1))
    assert leases.sweep(now=now()) == 1
    second = start(cloned_database)
    try:
        drain()
        wait_for("ready")
    finally:
        processes.stop(second, signal.SIGTERM, 20)
    report = Report.objects.get()
    assert report.counts is not None
    assert (report.counts["total"], report.counts["failed"], report.revision) == (TESTS, FAILED, 1)
    assert (Finding.objects.count(), ReportFile.objects.count()) == (FAILED, 1)
    assert len([path for path in storage_folder.rglob("*") if path.is_file()]) == 2
    assert not Wakeup.objects.filter(topic="report_received").exists()
