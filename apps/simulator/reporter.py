"""The callback as the official reporter builds it, and the repository_dispatch it answers.

The reporter is the reusable action that downstream workflows call at the start and at the end of a job. What the
hub gets from a character of the demo is, field for field, what it would get from that action.
"""

import datetime
from typing import Any


def callback_body(
    client_payload: dict[str, Any],
    *,
    status: str,
    conclusion: str | None,
    name: str,
    url: str,
    run_id: str,
    run_attempt: str,
    job_name: str,
    check_run_id: str,
    at: datetime.datetime,
    test_results: dict[str, int] | None = None,
    artifact_url: str | None = None,
) -> dict[str, Any]:
    """The JSON body of one callback: the whole dispatched client_payload again, with `workflow` beside it.

    `at` (aware, UTC) is the moment of reporting: the start in an `in_progress` callback, the end in a `completed`
    one; each callback knows only its own. Ids are text, as a workflow's expressions yield them. What a job has not
    got (`test_results`, `artifact_url`) is left out.
    """
    moment = at.isoformat().replace("+00:00", "Z")
    workflow: dict[str, Any] = {
        "schema_version": "1",
        "status": status,
        "conclusion": conclusion if status == "completed" else None,
        "name": name,
        "url": url,
        "run_id": run_id,
        "run_attempt": run_attempt,
        "job_name": job_name,
        "check_run_id": check_run_id,
        "started_at": None if status == "completed" else moment,
        "completed_at": moment if status == "completed" else None,
    }
    if test_results is not None:
        workflow["test_results"] = test_results
    if artifact_url is not None:
        workflow["artifact_url"] = artifact_url
    return client_payload | {"workflow": workflow}


def wants(event_type: str, client_payload: dict[str, Any]) -> bool:
    """Whether a downstream runs its jobs for this dispatch. Every receiver filters; these keep to the usual ones."""
    payload = client_payload.get("payload")
    if not isinstance(payload, dict):
        return False
    if event_type == "pull_request":
        return payload.get("action") in {"opened", "reopened", "synchronize"}
    return event_type == "push" and payload.get("ref") == "refs/heads/main"
