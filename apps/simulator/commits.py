"""The upstream repository's commits as a stand-in knows them: a line of main, heads beside it, and `compare`."""

import threading
from typing import Any

from apps.simulator.wire import Answer, Refusal, Request

PER_PAGE, MOST_PER_PAGE = 250, 250


class Commits:
    """Commits by parent, and branches. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parents: dict[str, str] = {}
        self._branches: dict[str, str] = {}

    def add(self, *shas: str, onto: str = "", branch: str = "") -> None:
        """Put commits one behind the other onto a known one; let a branch point at the last."""
        with self._lock:
            parent = onto
            for sha in shas:
                self._parents.setdefault(sha, parent)
                parent = sha
            if branch:
                self._branches[branch] = parent

    def knows(self, sha: str) -> bool:
        """Whether it is one of them."""
        with self._lock:
            return sha in self._parents

    def learn(self, event: str, body: dict[str, Any]) -> None:
        """What a webhook of the upstream repository says happened."""
        if event == "push" and body["ref"] == "refs/heads/main":
            self.add(body["before"])
            self.add(*(commit["id"] for commit in body["commits"]), onto=body["before"], branch="main")
        elif event == "pull_request":
            self.add(body["pull_request"]["base"]["sha"])
            self.add(body["pull_request"]["head"]["sha"], onto=body["pull_request"]["base"]["sha"])

    def compare(self, request: Request, base: str, head: str) -> Answer:
        """`GET …/compare/{base}...{head}`. Raises Refusal 404 for what is not known, or has nothing in common."""
        with self._lock:
            ours, theirs = self._line(base), self._line(head)
            known = set(ours)
            merge_base = next((sha for sha in theirs if sha in known), None)
            if merge_base is None:
                raise Refusal(404, "Not Found")
            ahead, behind = theirs[: theirs.index(merge_base)][::-1], ours.index(merge_base)
            size = min(int(request.query.get("per_page", PER_PAGE)), MOST_PER_PAGE)
            start = (int(request.query.get("page", 1)) - 1) * size
            status = {(0, 0): "identical"}.get((len(ahead), behind), "ahead" if not behind else "behind")
            return Answer(
                200,
                {
                    "status": "diverged" if ahead and behind else status,
                    "ahead_by": len(ahead),
                    "behind_by": behind,
                    "total_commits": len(ahead),
                    "base_commit": self._shown(ours[0]),
                    "merge_base_commit": self._shown(merge_base),
                    "commits": [self._shown(sha) for sha in ahead[start : start + size]],
                },
            )

    def _line(self, name: str) -> list[str]:
        """A commit or branch and everything before it, newest first."""
        sha = self._branches.get(name, name)
        if sha not in self._parents:
            raise Refusal(404, "Not Found")
        line = []
        while sha:
            line.append(sha)
            sha = self._parents.get(sha, "")
        return line

    def _shown(self, sha: str) -> dict[str, Any]:
        parent = self._parents.get(sha, "")
        return {"sha": sha, "parents": [{"sha": parent}] if parent else []}
