"""The check runs that a stand-in shows on commits, as far as someone who only reads them asks."""

import itertools
import threading
from typing import Any

from apps.simulator.wire import Answer, Refusal, Request

PER_PAGE = 30


class CheckRuns:
    """Check runs by commit, newest last. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(8_000_000_001)
        self._by_sha: dict[str, list[dict[str, Any]]] = {}

    def show(
        self,
        sha: str,
        name: str,
        *,
        conclusion: str = "",
        app_id: int = 99,
        app_name: str = "relay",
        started_at: str = "2026-11-30T14:51:05Z",
    ) -> int:
        """Show a check run on a commit: completed with a conclusion, in progress without. Returns its id."""
        with self._lock:
            number = next(self._numbers)
            self._by_sha.setdefault(sha, []).append(
                {
                    "id": number,
                    "head_sha": sha,
                    "name": name,
                    "status": "completed" if conclusion else "in_progress",
                    "conclusion": conclusion or None,
                    "started_at": started_at,
                    "app": {"id": app_id, "slug": app_name, "name": app_name},
                }
            )
            return number

    def listing(self, request: Request, sha: str) -> Answer:
        """`GET …/commits/{sha}/check-runs`: the newest of each name and App. Raises Refusal 422 for no commit."""
        if len(sha) != 40:
            raise Refusal(422, f"No commit found for SHA: {sha}")
        with self._lock:
            newest = {(run["app"]["id"], run["name"]): run for run in self._by_sha.get(sha, [])}
        rows = sorted(newest.values(), key=lambda run: -run["id"])
        size, page = int(request.query.get("per_page", PER_PAGE)), int(request.query.get("page", 1))
        return Answer(200, {"total_count": len(rows), "check_runs": rows[(page - 1) * size : page * size]})
