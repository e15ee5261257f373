"""The client against a real hub, with tokens of our GitHub that it asks for itself, and a real worker behind it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from django.test import Client as DjangoClient

from apps.relay.models import Rejection
from apps.results import meta
from apps.results.models import Report, Upload
from apps.simulator.standin import GitHubStandIn
from tests.client.recorder import Client, client_in
from tests.client.secrets import client_module
from tests.factories.listing import listed
from tests.live import Hub, Worker
from tests.relay.downstream import Downstream
from tests.relay.test_callback import KESTREL, dispatch

UPLOAD = ("report", "upload", "test-reports")


@pytest.fixture
def kestrel(storage_folder: Path, hub: Hub, downstream: Callable[..., Downstream], client: DjangoClient) -> Downstream:
    """Listed at L2, with one delivery dispatched to it."""
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    dispatch(client)
    return made


@pytest.fixture
def job(kestrel: Downstream, github: GitHubStandIn, tmp_path: Path) -> dict[str, str]:
    """The environment of a step of the run that the dispatch started, as GitHub Actions makes it."""
    wish = {"repository": KESTREL, "run_id": kestrel.run_id}
    run = requests.post(f"{github.url}/_standin/runs", json=wish, timeout=10).json()
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"client_payload": {"event_type": "pull_request", "delivery_id": "d-1"}}))
    return {
        "ACCELHUB_TOKEN": "",
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "repository_dispatch",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_JOB": "build",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_RUN_ID": kestrel.run_id,
        "GITHUB_WORKFLOW": "CI",
        "ACTIONS_ID_TOKEN_REQUEST_URL": run["token_url"],
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": run["request_token"],
    }


@pytest.fixture
def cli(step: Path, hub: Hub) -> Client:
    return client_in(step, hub.url)


def test_the_client_knows_every_field_that_the_hub_reads() -> None:
    known = {field.name for field in client_module("ci").FIELDS} | {"shard", "shards"}
    assert known == {field.path for field in meta.FIELDS}


def test_a_folder_becomes_a_report_of_its_delivery(
    cli: Client, job: dict[str, str], celery_worker_process: Worker
) -> None:
    ended = cli(*UPLOAD, "--wait", "--hardware", "N1 × 8", env=job)
    report = Report.objects.get()
    assert (ended.code, ended.out.splitlines()[0]) == (0, f"received: {report.public_id}"), ended.err
    assert ended.out.splitlines()[2:4] == [
        "state: ready",
        "counts: total 1, passed 1, failed 0, error 0, skipped 0, xfailed 0, xpassed 0, flaky 0, lost 0, unknown 0",
    ]
    assert report.dispatch is not None
    assert (report.dispatch.delivery.delivery_id, report.workflow, report.hardware) == ("d-1", "CI", "N1 × 8")
    assert list(report.files.values_list("name", flat=True)) == ["test-reports/python-pytest/test_ops/a.xml"]
    assert cli("report", "status", f"{report.public_id}").out.startswith("state: ready\n")


def test_the_step_tried_again_is_a_duplicate(cli: Client, job: dict[str, str]) -> None:
    first = cli(*UPLOAD, env=job)
    again = cli(*UPLOAD, env=job)
    assert (first.code, again.code, Upload.objects.count()) == (0, 0, 1)
    assert again.out == first.out.replace("received: ", "duplicate: ")


def test_shards_of_one_run_are_one_report(cli: Client, job: dict[str, str], step: Path) -> None:
    first = cli(*UPLOAD, "--shard", "1/2", env=job)
    (step / "test-reports" / "b.xml").write_text("<testsuites/>")
    second = cli(*UPLOAD, "--shard", "2/2", env=job)
    assert (second.code, second.out) == (0, first.out)
    assert Report.objects.get().report_key == f"run {job['GITHUB_RUN_ID']}.1 / CI / build"


def test_another_runs_number_is_refused_and_the_refusal_is_shown(cli: Client, job: dict[str, str]) -> None:
    ended = cli(*UPLOAD, "--run-id", "1", env=job)
    assert ended.code == 3
    assert "HTTP 403 The token contradicts the body (claims_contradict)\n  seen: run_id:" in ended.err
    assert Rejection.objects.values_list("code", flat=True).get() == "claims_contradict"


def test_a_body_that_the_hub_refuses_before_it_has_read_it_is_a_refusal_too(
    cli: Client, job: dict[str, str], step: Path
) -> None:
    (step / "big.gz").write_bytes(b"\x1f\x8b" + bytes(8 << 20))
    ended = cli("report", "upload", "big.gz", env=job | {"ACCELHUB_TOKEN": "no.such.token"})
    assert ended.code == 3, ended.err
    assert "(token_invalid)" in ended.err
