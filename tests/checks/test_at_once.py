"""What needs more than one transaction: two looks at a commit at once, and the whole way with a real worker."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import requests
from django.conf import settings
from django.db import connections, transaction

from apps.checks import reruns, services
from apps.checks.models import Check, Rerun
from apps.core.clock import now
from apps.core.tasks import drain_wakeups
from apps.relay.models import Delivery, Dispatch
from apps.relay.services import receive_delivery
from apps.simulator.standin import Dispatch as Received
from apps.simulator.standin import GitHubStandIn
from tests.checks.field import BUILD, KESTREL, LABEL, shown
from tests.factories import checks as factories
from tests.factories.checks import check
from tests.factories.jobs import job
from tests.factories.listing import listed
from tests.live import ClonedDatabase, Hub, Worker
from tests.relay.downstream import HEAD_SHA, PAYLOAD, Downstream, sign
from tests.relay.test_whole_path import OverHttp, github_before_hub, until

__all__ = ["github_before_hub"]
LABELLED = PAYLOAD | {"pull_request": PAYLOAD["pull_request"] | {"labels": [{"name": LABEL}]}}


def test_a_label_and_a_callback_at_once_do_not_miss_each_other(cloned_database: ClonedDatabase) -> None:
    """The label is being looked at, and has found no job; the job comes and finds no label: one waits for the other."""
    repository = listed({KESTREL: 3})[KESTREL]
    raw = json.dumps(LABELLED)
    receive_delivery(delivery_id="d-1", event="pull_request", body=LABELLED, raw=raw, now=now())
    delivery = Delivery.objects.get()
    sent = Dispatch.objects.create(
        delivery=delivery, repository=repository, created_at=now(), changed_at=now(), attempts=1
    )
    looked, made = threading.Event(), threading.Event()

    def label() -> None:
        try:
            with transaction.atomic():
                services.look_at_pull_request(delivery_pk=delivery.pk, now=now())
                looked.set()
                assert made.wait(30)
                time.sleep(0.3)  # the callback's look has begun
        finally:
            connections.close_all()

    thread = threading.Thread(target=label)
    thread.start()
    assert looked.wait(30)
    came = job(repository, dispatch=sent, head_sha=HEAD_SHA, pr_number=PAYLOAD["number"], job_name="build")
    made.set()
    assert services.look_at_jobs([came.pk], now=now()) == 1
    thread.join()
    assert list(Check.objects.values_list("name", "status")) == [(BUILD, "in_progress")]


def test_from_the_webhook_to_the_check_run_with_a_real_worker(
    github_before_hub: GitHubStandIn, hub: Hub, celery_worker_process: Worker
) -> None:
    github = github_before_hub
    for name in (settings.UPSTREAM_REPO, KESTREL):
        github.add_repository(name)
    listed({KESTREL: 3})
    answers: list[str] = []

    def run(received: Received) -> None:
        over_http: Any = OverHttp(hub.url)
        downstream = Downstream(received.repository, github, over_http, "77")
        for said in (downstream.body(), downstream.body(conclusion="success")):
            echoed = {key: received.client_payload[key] for key in ("event_type", "delivery_id", "payload")}
            answers.append(downstream.post(said | echoed).json()["status"])

    github.on_dispatch = run
    post(hub, LABELLED, "d-9")
    until(lambda: answers == ["applied", "applied"])
    until(beaten(lambda: shown(github) == [(BUILD, "success", "Passed")]))
    post(hub, LABELLED | {"action": "unlabeled", "label": {"name": LABEL}}, "d-10")
    until(lambda: Delivery.objects.filter(state="handled").exists())
    run_of_it = github.check_runs[-1]
    rerequested = {"action": "rerequested", "check_run": run_of_it, "repository": PAYLOAD["repository"]}
    post(hub, rerequested, "d-11", event="check_run")
    until(lambda: github.reruns == [(KESTREL, "77", "rerun-failed-jobs")])


def beaten(condition: Callable[[], Any]) -> Callable[[], Any]:
    """The condition, asked with what beat does every two seconds."""

    def ask() -> Any:
        drain_wakeups.delay()
        return condition()

    return ask


def post(hub: Hub, body: dict[str, Any], delivery_id: str, *, event: str = "pull_request") -> None:
    raw = json.dumps(body).encode()
    headers = {"X-GitHub-Event": event, "X-GitHub-Delivery": delivery_id, "X-Hub-Signature-256": sign(raw)}
    assert requests.post(f"{hub.url}/github/webhook", raw, headers=headers, timeout=60).status_code == 202


def test_the_same_rerequest_from_two_deliveries_at_once_is_one_rerun(cloned_database: ClonedDatabase) -> None:
    repository = listed({KESTREL: 4})[KESTREL]
    check(repository, BUILD, run_id="77", **factories.shown("completed"))
    body = {"action": "rerequested", "check_run": {"id": 5, "head_sha": HEAD_SHA}}
    for number in (1, 2):
        receive_delivery(delivery_id=f"r-{number}", event="check_run", body=body, raw=json.dumps(body), now=now())

    def ask(pk: int) -> None:
        try:
            reruns.request_reruns(delivery_pk=pk, now=now())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=ask, args=[pk]) for pk in Delivery.objects.values_list("pk", flat=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(Rerun.objects.values_list("run_id", "state")) == [("77", "pending")]
