"""What a stand-in remembers of workflow runs and commits: as much as its API is asked for."""

import threading
from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True)
class RunJob:
    """One job of a run attempt. `status`: queued, in_progress, completed; `conclusion` is '' until then."""

    name: str
    check_run_id: str
    status: str
    conclusion: str = ""


class Runs:
    """The jobs of the last `keep` run attempts, by (repository id, run id, attempt), and commits by repository id."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._lock = threading.Lock()
        self._runs: OrderedDict[tuple[int, str, int], dict[str, RunJob]] = OrderedDict()
        self._commits: set[tuple[int, str]] = set()

    def record(self, repository_id: int, run_id: str, attempt: int, job: RunJob) -> None:
        """Remember a job as it is now; an earlier record of the same check run is replaced."""
        with self._lock:
            self._runs.setdefault((repository_id, run_id, attempt), {})[job.check_run_id] = job
            while len(self._runs) > self._keep:
                self._runs.popitem(last=False)

    def jobs(self, repository_id: int, run_id: str, attempt: int) -> list[RunJob] | None:
        """A run attempt's jobs; None where there is no such run."""
        with self._lock:
            found = self._runs.get((repository_id, run_id, attempt))
            return None if found is None else list(found.values())

    def add_commit(self, repository_id: int, sha: str) -> None:
        with self._lock:
            self._commits.add((repository_id, sha))

    def has_commit(self, repository_id: int, sha: str) -> bool:
        with self._lock:
            return (repository_id, sha) in self._commits
