"""The check runs of a stand-in's repositories, its pull requests, and the runs that were asked to run again."""

import itertools
import threading
import time
from collections import OrderedDict
from typing import Any

from apps.simulator import shapes
from apps.simulator.directory import Repository
from apps.simulator.wire import Refusal

FIRST_CHECK_RUN_ID = 40_000_000_001
STATUSES = {"queued", "in_progress", "completed"}
CONCLUSIONS = {"success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required"}
LONGEST_NAME = LONGEST_TITLE = 255
LONGEST_SUMMARY = 65_535
# How many check runs and re-runs a stand-in remembers.
KEPT = 5_000
PAGE_MOST = 100


class Checks:
    """What GitHub keeps: check runs by id, open pull requests, re-runs in order. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(FIRST_CHECK_RUN_ID)
        self._runs: OrderedDict[int, dict[str, Any]] = OrderedDict()
        # None: of whichever repository is asked about.
        self._repository_of: dict[int, int | None] = {}
        self._pulls: dict[int, dict[int, str]] = {}
        self._reruns: list[tuple[str, str, str]] = []

    def all(self) -> list[dict[str, Any]]:
        """Every check run, oldest first."""
        with self._lock:
            return [dict(run) for run in self._runs.values()]

    @property
    def reruns(self) -> list[tuple[str, str, str]]:
        """(repository, run id, `rerun` or `rerun-failed-jobs`) of each that was accepted, in order."""
        with self._lock:
            return list(self._reruns)

    def open_pull_request(self, repository: Repository, number: int, head_sha: str) -> None:
        with self._lock:
            self._pulls.setdefault(repository.id, {})[number] = head_sha

    def pulls(self, repository: Repository, query: dict[str, str]) -> list[dict[str, Any]]:
        """`GET /repos/{owner}/{repo}/pulls` of the open ones, newest first."""
        with self._lock:
            numbers = sorted(self._pulls.get(repository.id, {}).items(), reverse=True)
        rows = [{"number": number, "state": "open", "head": {"sha": sha}} for number, sha in numbers]
        return _page(rows, query)

    def create(self, repository: Repository, wish: dict[str, Any], app: dict[str, Any] | None) -> dict[str, Any]:
        """Raises Refusal 422 as GitHub does."""
        name, head_sha = wish.get("name"), wish.get("head_sha")
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
            raise Refusal(422, f"Invalid request.\n\nname must be text of at most {LONGEST_NAME} characters.")
        if not isinstance(head_sha, str) or len(head_sha) != 40:
            raise Refusal(422, f"No commit found for SHA: {head_sha}")
        with self._lock:
            number = next(self._numbers)
            run = {
                "id": number,
                "name": name,
                "head_sha": head_sha,
                "status": "queued",
                "conclusion": None,
                "external_id": "",
                "details_url": None,
                "started_at": shapes.iso(time.time()),
                "completed_at": None,
                "html_url": f"https://github.com/{repository.full_name}/runs/{number}",
                "app": app,
                # GitHub names none for a fork's; who relies on it fails for forks.
                "pull_requests": [],
                "output": {"title": None, "summary": None},
            }
            self._keep(repository.id, _changed(run, wish))
            return dict(self._runs[number])

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
        """Let another App show a check run on a commit, whatever the repository: completed with a conclusion, in
        progress without. Returns its id."""
        with self._lock:
            number = next(self._numbers)
            self._keep(
                None,
                {
                    "id": number,
                    "head_sha": sha,
                    "name": name,
                    "status": "completed" if conclusion else "in_progress",
                    "conclusion": conclusion or None,
                    "started_at": started_at,
                    "external_id": "",
                    "app": {"id": app_id, "slug": app_name, "name": app_name},
                },
            )
            return number

    def _keep(self, repository_id: int | None, run: dict[str, Any]) -> None:
        self._runs[run["id"]] = run
        self._repository_of[run["id"]] = repository_id
        while len(self._runs) > KEPT:
            gone, _ = self._runs.popitem(last=False)
            del self._repository_of[gone]

    def update(self, repository: Repository, number: int, wish: dict[str, Any]) -> dict[str, Any]:
        """Raises Refusal 404 or 422 as GitHub does."""
        with self._lock:
            run = self._runs.get(number)
            if run is None or self._repository_of[number] != repository.id:
                raise Refusal(404, "Not Found")
            self._runs[number] = _changed(run, wish)
            return dict(self._runs[number])

    def of_commit(self, repository: Repository, head_sha: str, query: dict[str, str]) -> dict[str, Any]:
        """`GET /repos/{owner}/{repo}/commits/{sha}/check-runs`, the newest first; `filter=latest` is one of a name and
        App. Raises Refusal 422 for no commit."""
        if len(head_sha) != 40:
            raise Refusal(422, f"No commit found for SHA: {head_sha}")
        with self._lock:
            found = [
                dict(run)
                for number, run in reversed(self._runs.items())
                if self._repository_of[number] in (None, repository.id) and run["head_sha"] == head_sha
            ]
        for key, value in (("name", query.get("check_name")), ("status", query.get("status"))):
            found = [run for run in found if value is None or run[key] == value]
        if query.get("filter", "latest") == "latest":
            newest = {(run["app"]["id"], run["name"]): run for run in reversed(found)}
            found = sorted(newest.values(), key=lambda run: -run["id"])
        return {"total_count": len(found), "check_runs": _page(found, query)}

    def rerun(self, repository: Repository, run_id: str, scope: str) -> None:
        """Raises Refusal 403 where this run was asked to run again and has not been `finish_run`."""
        with self._lock:
            if any(name == repository.full_name and number == run_id for name, number, _ in self._reruns[-KEPT:]):
                raise Refusal(403, "This workflow is already running")
            self._reruns.append((repository.full_name, run_id, scope))

    def finish_runs(self) -> None:
        """Every run is over: each can be run again."""
        with self._lock:
            self._reruns.clear()


def _changed(run: dict[str, Any], wish: dict[str, Any]) -> dict[str, Any]:
    output = wish.get("output") or {}
    if len(output.get("title") or "") > LONGEST_TITLE or len(output.get("summary") or "") > LONGEST_SUMMARY:
        raise Refusal(422, "Invalid request.\n\nOnly 65535 characters are allowed; more were supplied.")
    status, conclusion = wish.get("status", run["status"]), wish.get("conclusion")
    if status not in STATUSES or (conclusion is not None and conclusion not in CONCLUSIONS):
        raise Refusal(422, "Invalid request.\n\nstatus or conclusion is not a member of its enum.")
    if status == "completed" and not (conclusion or run["conclusion"]):
        raise Refusal(422, "Invalid request.\n\nconclusion wasn't supplied.")
    kept = ("name", "external_id", "details_url", "started_at", "completed_at", "output")
    changed = run | {key: wish[key] for key in kept if key in wish}
    # A conclusion alone completes it, as on GitHub.
    return changed | ({"status": "completed", "conclusion": conclusion} if conclusion else {"status": status})


def _page(rows: list[dict[str, Any]], query: dict[str, str]) -> list[dict[str, Any]]:
    size = min(int(query.get("per_page", "30")), PAGE_MOST)
    first = (int(query.get("page", "1")) - 1) * size
    return rows[first : first + size]
