"""A downstream repository as the hub meets it: a dispatch comes in, callbacks with real tokens go out."""

import copy
import datetime
import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.test import Client

from apps.simulator.standin import GitHubStandIn

# A run of 715 seconds that has just ended, by a clock that is right.
ENDED_AT = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
STARTED_AT = ENDED_AT - datetime.timedelta(seconds=715)
HEAD_SHA = "c41d2e0f9a8b7c6d5e4f30211203f4e5d6c7b8a9"
PAYLOAD: dict[str, Any] = {
    "action": "opened",
    "number": 184233,
    "repository": {"full_name": "pytorch/pytorch"},
    "pull_request": {
        "number": 184233,
        "title": "Fold view into copy",
        "head": {"sha": HEAD_SHA, "ref": "fold", "repo": {"full_name": "demo-contributor-3/pytorch"}},
        "base": {"ref": "main", "sha": "77e2b1d04c5a69788796a5b4c3d2e1f00f1e2d3c"},
        "labels": [{"name": "ciflow/trunk"}],
        "user": {"login": "demo-contributor-3"},
    },
}


def _iso(moment: datetime.datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def sign(raw: bytes, secret: str | None = None) -> str:
    """The X-Hub-Signature-256 of a body."""
    key = (settings.GITHUB_WEBHOOK_SECRET if secret is None else secret).encode()
    return "sha256=" + hmac.new(key, raw, hashlib.sha256).hexdigest()


def send_webhook(
    client: Client, body: Any, *, event: str = "pull_request", delivery_id: str = "d-1", signature: str | None = None
) -> Any:
    """Post a webhook as GitHub does. `body` is JSON to be or raw bytes. Returns the response."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"X-GitHub-Event": event, "X-GitHub-Delivery": delivery_id}
    if signature != "":
        headers["X-Hub-Signature-256"] = sign(raw) if signature is None else signature
    return client.post("/github/webhook", raw, content_type="application/json", headers=headers)


@dataclass
class Downstream:
    """One workflow run of a downstream repository. `run_id` is the run's, in the token as in the body."""

    full_name: str
    github: GitHubStandIn
    client: Client
    run_id: str

    def token(self, **overrides: Any) -> str:
        """A fresh token of this run."""
        claims = {"audience": settings.OIDC_AUDIENCE, "run_id": self.run_id, "run_attempt": "1"} | overrides
        return self.github.mint_token(self.full_name, **claims)

    def body(self, delivery_id: str = "d-1", **workflow: Any) -> dict[str, Any]:
        """A callback's body, field for field the official reporter's; keywords change `workflow`, None removes."""
        started = {"status": "in_progress", "conclusion": None, "started_at": _iso(STARTED_AT)}
        ended = {"status": "completed", "completed_at": _iso(ENDED_AT)}
        fields = {
            "schema_version": "1",
            "name": "CI",
            "url": f"https://github.com/{self.full_name}/actions/runs/{self.run_id}",
            "run_id": self.run_id,
            "run_attempt": "1",
            "job_name": "build",
            "check_run_id": "456",
            "started_at": None,
            "completed_at": None,
        }
        fields |= (ended if workflow.get("conclusion") else started) | workflow
        return {
            "event_type": "pull_request",
            "delivery_id": delivery_id,
            "payload": copy.deepcopy(PAYLOAD),
            "workflow": fields,
        }

    def post(self, body: Any, *, token: str | None = None, path: str = "/github/callback") -> Any:
        """Post a callback. `body` is JSON to be or raw bytes; `token` '' sends none. Returns the response."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token() if token is None else token}"} if token != "" else {}
        return self.client.post(path, raw, content_type="application/json", headers=headers)

    def start(self, **workflow: Any) -> Any:
        """Say that a job began."""
        return self.post(self.body(**workflow))

    def end(self, conclusion: str = "success", **workflow: Any) -> Any:
        """Say that a job ended."""
        return self.post(self.body(conclusion=conclusion, **workflow))


def answer(response: Any) -> tuple[int, dict[str, Any]]:
    """Status and JSON of a response, the job's address cut to whether there is one."""
    body = response.json()
    return response.status_code, body | ({"job": bool(body["job"])} if "job" in body else {})


def refusal(response: Any) -> tuple[int, str, str | None]:
    """Status, code and field of a problem+json response."""
    assert response.headers["Content-Type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == response.status_code
    assert body["type"] == f"{settings.BASE_URL}/docs/errors/{body['code']}"
    return response.status_code, body["code"], body.get("field")
