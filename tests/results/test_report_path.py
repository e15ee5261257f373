"""The whole path of a report, with a real worker: upload, receipt, and what the job hears."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from apps.core.wakeups import drain
from apps.relay.models import Job
from apps.results.models import Report
from tests.factories.listing import listed
from tests.live import READY_SECONDS, ClonedDatabase, Worker
from tests.relay.downstream import Downstream
from tests.relay.test_callback import KESTREL, dispatch
from tests.results.reporter import JUNIT, received, upload


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not what():
        if time.monotonic() > deadline:
            pytest.fail("it does not come", pytrace=False)
        drain()
        drain(lazy=True)
        time.sleep(0.05)


def test_an_upload_is_parsed_and_its_job_hears_of_it_by_wake_ups_alone(
    storage_folder: Path,
    cloned_database: ClonedDatabase,
    celery_worker_process: Worker,
    downstream: Callable[..., Downstream],
    client: Client,
) -> None:
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    dispatch(client)
    name = received(upload(made, JUNIT, delivery_id="d-1", event_type="pull_request"))
    wait_for(lambda: Report.objects.filter(public_id=name, state="ready").exists())
    made.start()
    made.end("success")
    wait_for(lambda: Job.objects.filter(bucket="contradicted").exists())
    assert client.get(f"/api/v1/reports/{name}/").json()["flags"] == ["contradicts_job"]
