"""A pull request and what happens to it, through the hub's HTTP doors; and what GitHub then shows."""

import copy
import datetime
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.test import Client

from apps.checks import reruns, services
from apps.checks.models import Check, Rerun
from apps.core import wakeups
from apps.core.clock import now
from apps.relay import outbox
from apps.relay.models import Dispatch
from apps.simulator.standin import GitHubStandIn
from tests.relay.downstream import HEAD_SHA, PAYLOAD, Downstream, send_webhook

KESTREL, FEN = "kestrel-demo/torch-kestrel", "fen-demo/torch-fen"
NUMBER = PAYLOAD["number"]
LABEL = "ciflow/crcr/npu"
BUILD = f"crcr/{KESTREL}/CI/build"
_deliveries = itertools.count(1)


@dataclass
class Upstream:
    """One pull request of the upstream repository, and the webhooks that GitHub sends about it."""

    github: GitHubStandIn
    client: Client
    make: Callable[..., Downstream]
    labels: list[str] = field(default_factory=lambda: ["ciflow/trunk"])
    second: int = 0
    state: str = "open"
    last_delivery: str = ""

    def tells(
        self, action: str, *, label: str = "", head_sha: str = HEAD_SHA, at: int | None = None, **pull: Any
    ) -> str:
        """A webhook about the pull request, a second after the one before (or in second `at`). Returns its id."""
        self.second = self.second + 1 if at is None else at
        self.state = {"closed": "closed", "reopened": "open"}.get(action, self.state)
        if action == "labeled":
            self.labels = [*self.labels, label]
        elif action == "unlabeled":
            self.labels = [name for name in self.labels if name != label]
        body = copy.deepcopy(PAYLOAD) | {"action": action}
        body["pull_request"] |= {
            "labels": [{"name": name} for name in self.labels],
            "state": self.state,
            "updated_at": f"2026-11-30T14:00:{self.second:02}Z",
        } | pull
        body["pull_request"]["head"]["sha"] = head_sha
        if label:
            body["label"] = {"name": label}
        return self.posts("pull_request", body)

    def presses_rerun(
        self, event: str = "check_run", *, run: dict[str, Any] | None = None, sha: str = HEAD_SHA
    ) -> None:
        """Somebody presses “re-run” on a check run (default: GitHub's newest), or on all of a commit."""
        about = {"id": 1, "head_sha": sha}
        if event == "check_run":
            run = run or self.github.check_runs[-1]
            about = {key: run[key] for key in ("id", "head_sha", "name", "external_id", "pull_requests")}
        body = {"action": "rerequested", event: about, "sender": {"login": "demo-contributor-3"}}
        self.posts(event, body | {"repository": {"full_name": settings.UPSTREAM_REPO}})

    def posts(self, event: str, body: dict[str, Any]) -> str:
        delivery_id = f"d-{next(_deliveries)}"
        assert send_webhook(self.client, body, event=event, delivery_id=delivery_id).status_code == 202
        settle()
        if event == "pull_request" and body["action"] in ("opened", "synchronize", "reopened", "closed"):
            self.last_delivery = delivery_id
        return delivery_id

    def says(self, who: Downstream, conclusion: str = "", **workflow: Any) -> None:
        """A job of a downstream begins, or ends with a conclusion, about the newest dispatched webhook."""
        delivery_id = workflow.pop("delivery_id", self.last_delivery)
        body = who.body(delivery_id, **workflow, **({"conclusion": conclusion} if conclusion else {}))
        answered = who.post(body, token=who.token(run_attempt=body["workflow"]["run_attempt"]))
        assert answered.status_code == 200, answered.json()
        settle()


def settle() -> None:
    """What the workers would do by themselves: drain the wake-ups, send what waits and is due."""
    while wakeups.drain():
        for pk in Dispatch.objects.filter(state="pending").order_by("pk").values_list("pk", flat=True):
            outbox.send_dispatch(dispatch_pk=pk, now=now(), chance=0)
        for pk in Check.objects.filter(state="pending").order_by("pk").values_list("pk", flat=True):
            services.send_check(check_pk=pk, now=now())
        for pk in Rerun.objects.filter(state="pending").order_by("pk").values_list("pk", flat=True):
            reruns.send_rerun(rerun_pk=pk, now=now())


def shown(github: GitHubStandIn) -> list[tuple[str, str, str | None]]:
    """What GitHub shows: of each name at each commit the newest check run, as (name, status or conclusion, title)."""
    newest = {(run["head_sha"], run["name"]): run for run in github.check_runs}
    return [(run["name"], run["conclusion"] or run["status"], run["output"]["title"]) for run in newest.values()]


def seconds_later(seconds: float) -> datetime.datetime:
    return now() + datetime.timedelta(seconds=seconds)
