"""The protocol end to end: HTTP, a real worker, a stand-in GitHub, many clients at once."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from django.conf import settings

from apps.relay.models import Callback, Delivery, Dispatch, Job
from apps.simulator.standin import Dispatch as Received
from apps.simulator.standin import GitHubStandIn
from tests.factories.listing import listed
from tests.live import ClonedDatabase, Hub, Worker
from tests.relay.downstream import PAYLOAD, Downstream, sign

KESTREL, FEN = "kestrel-demo/torch-kestrel", "fen-demo/torch-fen"


class OverHttp:
    """Stands where the test client stands, and posts over a socket."""

    def __init__(self, url: str) -> None:
        self._url = url

    def post(self, path: str, raw: bytes, *, content_type: str, headers: dict[str, str]) -> requests.Response:
        return requests.post(self._url + path, raw, headers=headers | {"Content-Type": content_type}, timeout=60)


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Wait for something to become true. Returns it; fails the test after a generous bound."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"not within {seconds} s")
        time.sleep(0.05)
    return found


def test_a_webhook_becomes_a_dispatch_and_its_answer_from_inside_becomes_a_job(
    github_before_hub: GitHubStandIn, hub: Hub, celery_worker_process: Worker
) -> None:
    """The downstream answers before the stand-in has said 204: the dispatch row is there already."""
    for name in (KESTREL, FEN):
        github_before_hub.add_repository(name)
    listed({KESTREL: 2, FEN: 1})
    answers = []

    def run(received: Received) -> None:
        downstream: Any = Downstream(received.repository, github_before_hub, OverHttp(hub.url), "77")  # type: ignore[arg-type]
        body = downstream.body()
        echoed = {key: received.client_payload[key] for key in ("event_type", "delivery_id", "payload")}
        answers.append(downstream.post(body | echoed).json()["status"])
        answers.append(downstream.post(downstream.body(conclusion="success") | echoed).json()["status"])

    github_before_hub.on_dispatch = run
    raw = json.dumps(PAYLOAD).encode()
    headers = {"X-GitHub-Event": "pull_request", "X-GitHub-Delivery": "d-9", "X-Hub-Signature-256": sign(raw)}
    assert requests.post(f"{hub.url}/github/webhook", raw, headers=headers, timeout=60).status_code == 202
    until(lambda: len(answers) == 4)
    assert Counter(answers) == {"applied": 2, "ignored": 2}
    until(lambda: set(Dispatch.objects.values_list("state", flat=True)) == {"sent"})
    assert Delivery.objects.get().state == "fanned_out"
    assert list(Job.objects.values_list("repository__full_name", "delivery_id", "bucket", "pr_number")) == [
        (KESTREL, "d-9", "success", 184233)
    ]
    page = requests.get(f"{hub.url}/platforms/kestrel-demo-torch-kestrel/", timeout=60)
    assert "#184233" in page.text


def test_many_callbacks_of_one_job_at_once_make_one_job(github: GitHubStandIn, hub: Hub) -> None:
    github.add_repository(KESTREL)
    repository = listed({KESTREL: 2})[KESTREL]
    _dispatched(repository.pk)
    over_http: Any = OverHttp(hub.url)
    downstream = Downstream(KESTREL, github, over_http, "88")
    assert downstream.start(job_name="first, pins the identity").status_code == 200
    bodies = [downstream.body(), downstream.body(conclusion="success"), downstream.body(conclusion="failure")] * 8
    with ThreadPoolExecutor(16) as pool:
        responses = list(pool.map(downstream.post, bodies))
    said = Counter((r.status_code, r.json().get("status") if r.ok else r.json()["code"]) for r in responses)
    job = Job.objects.get(job_name="build")
    # Whoever was first stands: 8 ends agree with it, 8 do not; of the starts one was seen, as start or as late start.
    assert job.conclusion in ("success", "failure")
    assert said[409, "completion_conflict"] == 8
    assert said[200, "applied"] + said[200, "late"] + said[200, "duplicate"] == 16
    assert job.start_seen_at is not None
    assert Counter(job.callbacks.values_list("answer", flat=True)) == Counter(
        {
            "applied": said[200, "applied"],
            "late": said[200, "late"],
            "conflict": 1,
        }
    ) - Counter({"late": 0})
    assert said[200, "applied"] + said[200, "late"] == 2


def test_the_same_webhook_many_times_at_once_is_one_delivery(cloned_database: ClonedDatabase, hub: Hub) -> None:
    raw = json.dumps(PAYLOAD).encode()
    headers = {"X-GitHub-Event": "pull_request", "X-GitHub-Delivery": "d-9", "X-Hub-Signature-256": sign(raw)}
    with ThreadPoolExecutor(8) as pool:
        responses = list(
            pool.map(lambda _: requests.post(f"{hub.url}/github/webhook", raw, headers=headers, timeout=60), range(16))
        )
    assert Counter(r.json()["status"] for r in responses) == {"accepted": 1, "duplicate": 15}
    assert Delivery.objects.count() == 1


def test_one_private_callback_many_times_at_once_is_kept_once(github: GitHubStandIn, hub: Hub) -> None:
    github.add_repository(FEN)
    repository = listed({FEN: 1})[FEN]
    _dispatched(repository.pk)
    over_http: Any = OverHttp(hub.url)
    downstream = Downstream(FEN, github, over_http, "88")
    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(downstream.post, [downstream.body()] * 16))
    assert {(r.status_code, r.json()["status"]) for r in responses} == {(200, "ignored")}
    assert Callback.objects.count() == 1


def _dispatched(repository_pk: int) -> None:
    from apps.core.clock import now

    delivery = Delivery.objects.create(
        delivery_id="d-1", event="pull_request", state="fanned_out", received_at=now(), pr_number=1
    )
    Dispatch.objects.create(
        delivery=delivery, repository_id=repository_pk, created_at=now(), changed_at=now(), attempts=1
    )


@pytest.fixture
def github_before_hub(github: GitHubStandIn, monkeypatch: pytest.MonkeyPatch) -> GitHubStandIn:
    """The stand-in, told to subprocesses too: a worker reads its settings from the environment."""
    monkeypatch.setenv("ACCELHUB_GITHUB_API_URL", github.url)
    monkeypatch.setenv("ACCELHUB_OIDC_ISSUERS", json.dumps(settings.OIDC_ISSUERS))
    return github


def test_threads_do_not_send_each_others_dispatches(github: GitHubStandIn) -> None:
    """A library's connection keeps the request it is about to send: with one for all, threads overwrite each other."""
    from apps.core.github import client

    for name in (KESTREL, FEN):
        github.add_repository(name)
    wanted = [(name, str(number)) for number in range(100) for name in (KESTREL, FEN)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(16) as pool:
            list(
                pool.map(
                    lambda one: client().send_dispatch(
                        one[0], event_type="pull_request", client_payload={"delivery_id": one[1]}
                    ),
                    wanted,
                )
            )
    finally:
        sys.setswitchinterval(before)
    got = [(dispatch.repository, dispatch.client_payload["delivery_id"]) for dispatch in github.dispatches]
    assert sorted(got) == sorted(wanted)
    assert [r.path for r in github.requests].count(f"/repos/{KESTREL}/installation") == 1
