"""What a stand-in's repositories hold: branches, commits, files, pull requests. As much of git as the hub asks for.

A commit is a whole set of files. A pull request is merged as upstream merges: one new commit on the base branch.
"""

import hashlib
import itertools
import threading
import time
from dataclasses import dataclass, field, replace

MAIN = "main"


@dataclass(frozen=True)
class Commit:
    """One state of all files. `at` in epoch seconds."""

    sha: str
    parent: str
    message: str
    at: float
    files: dict[str, bytes]


@dataclass(frozen=True)
class Pull:
    """A pull request inside one repository. Times in epoch seconds."""

    number: int
    title: str
    body: str
    head: str
    head_sha: str
    base: str
    created_at: float
    state: str = "open"
    closed_at: float | None = None
    merged_at: float | None = None
    merge_sha: str = ""


class Conflict(Exception):
    """GitHub would not do this; the words are its own."""


def blob_sha(content: bytes) -> str:
    """The id that git gives to a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@dataclass
class RepositoryContents:
    """One repository. Safe to use from several threads."""

    _lock: threading.RLock = field(default_factory=threading.RLock)
    _commits: dict[str, Commit] = field(default_factory=dict)
    _branches: dict[str, str] = field(default_factory=dict)
    _pulls: dict[int, Pull] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._branches[MAIN] = self._commit("", "the beginning", {}).sha

    # --- for tests and the stand-in's own -----------------------------------------------------------------------

    def push(self, path: str, text: str | bytes | None, *, branch: str = MAIN, message: str = "an edit") -> str:
        """Put a file on a branch (None: take it away) with a commit of its own. Returns the commit's id."""
        content = text.encode() if isinstance(text, str) else text
        with self._lock:
            before = self._commits[self._branches[branch]]
            files = {name: held for name, held in before.files.items() if name != path}
            if content is not None:
                files[path] = content
            self._branches[branch] = self._commit(before.sha, message, files).sha
            return self._branches[branch]

    def read(self, path: str, *, branch: str = MAIN) -> bytes:
        """A file as a branch has it. Raises KeyError."""
        with self._lock:
            return self._commits[self._branches[branch]].files[path]

    def merge(self, number: int) -> str:
        """Merge an open pull request. Returns the commit on its base. Raises Conflict where a file changed on both."""
        with self._lock:
            pull = self._pulls[number]
            base, head = self._commits[self._branches[pull.base]], self._commits[self._branches[pull.head]]
            fork = self._fork(head, base)
            changed = {name for name in head.files if head.files[name] != fork.files.get(name)}
            if any(base.files.get(name) != fork.files.get(name) for name in changed):
                raise Conflict("Pull Request is not mergeable")
            files = base.files | {name: head.files[name] for name in changed}
            commit = self._commit(base.sha, f"{pull.title} (#{number})", files)
            self._branches[pull.base] = commit.sha
            self._pulls[number] = replace(
                pull, state="closed", closed_at=commit.at, merged_at=commit.at, merge_sha=commit.sha
            )
            return commit.sha

    def land(self, number: int) -> str:
        """Merge as upstream's bot does: its own commit on the base, and the pull request is closed, not merged."""
        sha = self.merge(number)
        with self._lock:
            self._pulls[number] = replace(self._pulls[number], merged_at=None, merge_sha="")
        return sha

    def close(self, number: int) -> None:
        """Close a pull request without merging it."""
        with self._lock:
            self._pulls[number] = replace(self._pulls[number], state="closed", closed_at=time.time())

    @property
    def pulls(self) -> list[Pull]:
        """Every pull request, oldest first."""
        with self._lock:
            return list(self._pulls.values())

    # --- what the API asks --------------------------------------------------------------------------------------

    def resolve(self, ref: str) -> Commit | None:
        """The commit of a branch or an id."""
        with self._lock:
            return self._commits.get(self._branches.get(ref, ref))

    def history(self, ref: str, path: str) -> list[Commit]:
        """The commits that changed a file, newest first."""
        found, commit = [], self.resolve(ref)
        while commit is not None:
            parent = self.resolve(commit.parent)
            if commit.files.get(path) != (parent.files.get(path) if parent else None):
                found.append(commit)
            commit = parent
        return found

    def branches(self, prefix: str = "") -> dict[str, str]:
        """Branch → commit, by name."""
        with self._lock:
            return {name: sha for name, sha in sorted(self._branches.items()) if name.startswith(prefix)}

    def create_branch(self, name: str, sha: str) -> None:
        """Raises Conflict."""
        with self._lock:
            if name in self._branches:
                raise Conflict("Reference already exists")
            if sha not in self._commits:
                raise Conflict("Object does not exist")
            self._branches[name] = sha

    def write(self, path: str, content: bytes, *, branch: str, expected: str, message: str) -> Commit:
        """The contents API's edit: `expected` is the blob that it replaces. Raises Conflict."""
        with self._lock:
            known = self._commits[self._branches[branch]].files.get(path)
            if known is not None and blob_sha(known) != expected:
                raise Conflict(f"{path} does not match {expected}")
            return self._commits[self.push(path, content, branch=branch, message=message)]

    def open_pull(self, *, title: str, head: str, base: str = MAIN, body: str = "") -> Pull:
        """Raises Conflict."""
        with self._lock:
            if base not in self._branches or head not in self._branches:
                raise Conflict("Validation Failed")
            if any(pull.head == head and pull.state == "open" for pull in self._pulls.values()):
                raise Conflict("A pull request already exists")
            if self._branches[head] == self._branches[base]:
                raise Conflict(f"No commits between {base} and {head}")
            pull = Pull(next(self._numbers), title, body, head, self._branches[head], base, time.time())
            self._pulls[pull.number] = pull
            return pull

    def _commit(self, parent: str, message: str, files: dict[str, bytes]) -> Commit:
        at = time.time()
        parts = repr((parent, message, at, sorted((name, blob_sha(held)) for name, held in files.items())))
        commit = Commit(hashlib.sha1(parts.encode(), usedforsecurity=False).hexdigest(), parent, message, at, files)
        self._commits[commit.sha] = commit
        return commit

    def _fork(self, head: Commit, base: Commit) -> Commit:
        """Where the two parted."""
        line, commit = set(), base
        while True:
            line.add(commit.sha)
            if not commit.parent:
                break
            commit = self._commits[commit.parent]
        while head.sha not in line:
            head = self._commits[head.parent]
        return head


class Contents:
    """What every repository holds, by its id: a rename changes nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_id: dict[int, RepositoryContents] = {}

    def of(self, repository_id: int) -> RepositoryContents:
        with self._lock:
            return self._by_id.setdefault(repository_id, RepositoryContents())
