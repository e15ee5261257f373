"""Check runs and re-runs that pages read, made with the ORM: how they come about is tested in tests/checks."""

from typing import Any

from apps.checks.models import Check, Rerun
from apps.core.clock import now
from apps.platforms.models import Repository
from tests.factories.jobs import days_ago
from tests.relay.downstream import HEAD_SHA


def check(repository: Repository, name: str = "crcr/acme/torch/CI/build", **values: Any) -> Check:
    """A check run in progress that was given up, three days old."""
    given = {
        "name": name,
        "head_sha": HEAD_SHA,
        "pr_number": 7,
        "status": "in_progress",
        "title": "Running",
        "summary": "**Running.**",
        "state": "given_up",
        "attempts": 7,
        "error": "GitHub answered 503",
        "created_at": days_ago(3),
        "changed_at": days_ago(3),
        "next_attempt_at": days_ago(3),
    }
    return Check.objects.create(repository=repository, **(given | values))


def shown(status: str = "in_progress") -> dict[str, Any]:
    """The values of a check run that GitHub shows."""
    sent = {"state": "sent", "github_id": 5, "sent_revision": 1, "sent_status": status, "sent_at": now()}
    return sent | ({"status": status, "conclusion": "failure", "title": "Failed"} if status == "completed" else {})


def rerun(repository: Repository, **values: Any) -> Rerun:
    """A re-run of run 7's failed jobs that waits, asked for three days ago."""
    given = {"run_id": "7", "scope": "rerun-failed-jobs", "delivery_id": "d-1", "head_sha": HEAD_SHA}
    times = {"created_at": days_ago(3), "changed_at": days_ago(3), "next_attempt_at": days_ago(3)}
    return Rerun.objects.create(repository=repository, **(given | times | values))
