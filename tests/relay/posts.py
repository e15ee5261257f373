"""Today's relay, as the hub stands behind it: it posts what its downstreams called back."""

import copy
import json
from typing import Any

from django.test import Client

from tests.relay.downstream import PAYLOAD

KEY = "the-relays-key"
KESTREL = "kestrel-demo/torch-kestrel"


def post_body(
    conclusion: str = "",
    *,
    repository: str = KESTREL,
    delivery_id: str = "d-1",
    metrics: Any = None,
    event: str = "pull_request",
    **workflow: Any,
) -> dict[str, Any]:
    """A body of `POST /api/crcr/results`; keywords change `workflow`, None removes."""
    said = {
        "status": "completed" if conclusion else "in_progress",
        "conclusion": conclusion or None,
        "name": "CI",
        "url": f"https://github.com/{repository}/actions/runs/7",
        "run_id": "7",
        "run_attempt": "1",
        "job_name": "build",
        "check_run_id": "456",
    } | workflow
    return {
        "trusted": {
            "verified_repo": repository,
            "downstream_repo_level": "L2",
            "ci_metrics": metrics or {"queue_time": None, "execution_time": None},
        },
        "untrusted": {
            "callback_payload": {
                "event_type": event,
                "delivery_id": delivery_id,
                "payload": copy.deepcopy(PAYLOAD),
                "workflow": {name: value for name, value in said.items() if value is not None},
            }
        },
    }


def post(client: Client, body: Any, *, key: str | None = KEY) -> Any:
    """Post as the relay does. `body` is JSON to be or raw bytes; `key` None sends none."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {} if key is None else {"x-hud-internal-bot": key}
    return client.post("/api/crcr/results", raw, content_type="application/json", headers=headers)
