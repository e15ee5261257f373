"""The stand-in's answers about branches, files and pull requests, in GitHub's shapes."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from apps.simulator import shapes
from apps.simulator.access import Access
from apps.simulator.contents import Commit, Conflict, Pull, RepositoryContents, blob_sha
from apps.simulator.directory import Repository
from apps.simulator.wire import Answer, Refusal, Request

# GitHub gives larger files without their content.
LARGEST_CONTENT = 1_000_000
MOST_PER_PAGE = 100


@dataclass(frozen=True)
class Asked:
    """One request about one repository."""

    request: Request
    repository: Repository
    held: RepositoryContents
    access: Access
    url: str

    @property
    def api(self) -> str:
        return f"{self.url}/repos/{self.repository.full_name}"

    @property
    def page_url(self) -> str:
        return f"https://github.com/{self.repository.full_name}"

    def body(self) -> dict[str, Any]:
        found = self.request.json()
        if not isinstance(found, dict):
            raise Refusal(422, "Invalid request.\n\nFor 'links/0/schema', the value is not an object.")
        return found

    def page(self, rows: list[Any]) -> list[Any]:
        """One page of a list, as `per_page` and `page` ask."""
        size = min(int(self.request.query.get("per_page", 30)), MOST_PER_PAGE)
        start = (int(self.request.query.get("page", 1)) - 1) * size
        return rows[start : start + size]

    def require(self, permission: str) -> None:
        """Refuse whoever may not write. Raises Refusal."""
        token = self.access.installation_token(self.request.bearer())
        if token is None:
            raise Refusal(401, "Requires authentication")
        if not token.reaches(self.repository) or token.permissions.get(permission) != "write":
            raise Refusal(403, "Resource not accessible by integration")

    def require_read(self) -> None:
        """Refuse whoever may not see a private repository. Raises Refusal."""
        token = self.access.installation_token(self.request.bearer())
        if self.repository.private and (token is None or not token.reaches(self.repository)):
            raise Refusal(404, "Not Found")


def list_commits(asked: Asked) -> Answer:
    query = asked.request.query
    if asked.held.resolve(query.get("sha", "main")) is None:
        raise Refusal(404, "Not Found")
    commits = asked.held.history(query.get("sha", "main"), query.get("path", ""))
    return Answer(200, [_commit_json(asked, commit) for commit in asked.page(commits)])


def get_contents(asked: Asked, path: str) -> Answer:
    commit = asked.held.resolve(asked.request.query.get("ref", "main"))
    if commit is None:
        raise Refusal(404, "No commit found for the ref")
    if path not in commit.files:
        raise Refusal(404, "Not Found")
    return Answer(200, _file_json(asked, path, commit.files[path]))


def put_contents(asked: Asked, path: str) -> Answer:
    asked.require("contents")
    wish = asked.body()
    branch, content = wish.get("branch", "main"), base64.b64decode(wish["content"])
    if branch not in asked.held.branches():
        raise Refusal(404, f"Branch {branch} not found")
    try:
        commit = asked.held.write(
            path, content, branch=branch, expected=wish.get("sha", ""), message=str(wish.get("message", ""))
        )
    except Conflict as conflict:
        raise Refusal(409, str(conflict)) from conflict
    said = _commit_json(asked, commit)
    return Answer(200, {"content": _file_json(asked, path, content), "commit": said["commit"] | {"sha": commit.sha}})


def get_ref(asked: Asked, branch: str) -> Answer:
    sha = asked.held.branches().get(branch)
    if sha is None:
        raise Refusal(404, "Not Found")
    return Answer(200, _ref_json(asked, branch, sha))


def matching_refs(asked: Asked, prefix: str) -> Answer:
    rows = [_ref_json(asked, branch, sha) for branch, sha in asked.held.branches(prefix).items()]
    return Answer(200, asked.page(rows))


def create_ref(asked: Asked) -> Answer:
    asked.require("contents")
    wish = asked.body()
    branch, sha = str(wish["ref"]).removeprefix("refs/heads/"), str(wish["sha"])
    try:
        asked.held.create_branch(branch, sha)
    except Conflict as conflict:
        raise Refusal(422, str(conflict)) from conflict
    return Answer(201, _ref_json(asked, branch, sha))


def list_pulls(asked: Asked) -> Answer:
    query = asked.request.query
    state, owner = query.get("state", "open"), asked.repository.owner
    found = [
        pull
        for pull in reversed(asked.held.pulls)
        if state in {"all", pull.state} and query.get("head", f"{owner}:{pull.head}") == f"{owner}:{pull.head}"
    ]
    return Answer(200, [_pull_json(asked, pull) for pull in asked.page(found)])


def get_pull(asked: Asked, number: str) -> Answer:
    for pull in asked.held.pulls:
        if pull.number == int(number):
            return Answer(200, _pull_json(asked, pull) | {"merged": pull.merged_at is not None})
    raise Refusal(404, "Not Found")


def create_pull(asked: Asked) -> Answer:
    asked.require("pull_requests")
    wish = asked.body()
    try:
        pull = asked.held.open_pull(
            title=str(wish["title"]), head=str(wish["head"]), base=str(wish["base"]), body=str(wish.get("body", ""))
        )
    except Conflict as conflict:
        raise Refusal(422, str(conflict)) from conflict
    return Answer(201, _pull_json(asked, pull) | {"merged": False})


def _commit_json(asked: Asked, commit: Commit) -> dict[str, Any]:
    person = {"name": "Someone", "email": "someone@upstream.example", "date": shapes.iso(commit.at)}
    return {
        "sha": commit.sha,
        "url": f"{asked.api}/commits/{commit.sha}",
        "html_url": f"{asked.page_url}/commit/{commit.sha}",
        "commit": {"message": commit.message, "author": person, "committer": person},
        "parents": [{"sha": commit.parent}] if commit.parent else [],
    }


def _file_json(asked: Asked, path: str, content: bytes) -> dict[str, Any]:
    is_whole = len(content) <= LARGEST_CONTENT
    return {
        "type": "file",
        "encoding": "base64" if is_whole else "none",
        "size": len(content),
        "name": path.rpartition("/")[2],
        "path": path,
        "content": base64.encodebytes(content).decode() if is_whole else "",
        "sha": blob_sha(content),
        "url": f"{asked.api}/contents/{path}",
        "html_url": f"{asked.page_url}/blob/main/{path}",
    }


def _ref_json(asked: Asked, branch: str, sha: str) -> dict[str, Any]:
    return {
        "ref": f"refs/heads/{branch}",
        "url": f"{asked.api}/git/refs/heads/{branch}",
        "object": {"type": "commit", "sha": sha, "url": f"{asked.api}/git/commits/{sha}"},
    }


def _pull_json(asked: Asked, pull: Pull) -> dict[str, Any]:
    owner = asked.repository.owner
    return {
        "number": pull.number,
        "state": pull.state,
        "title": pull.title,
        "body": pull.body,
        "url": f"{asked.api}/pulls/{pull.number}",
        "html_url": f"{asked.page_url}/pull/{pull.number}",
        "head": {"ref": pull.head, "sha": pull.head_sha, "label": f"{owner}:{pull.head}"},
        "base": {"ref": pull.base, "label": f"{owner}:{pull.base}"},
        "created_at": shapes.iso(pull.created_at),
        "closed_at": None if pull.closed_at is None else shapes.iso(pull.closed_at),
        "merged_at": None if pull.merged_at is None else shapes.iso(pull.merged_at),
        "merge_commit_sha": pull.merge_sha or None,
    }


# Method, what follows the repository in the path, the answer.
CONTENT_ROUTES: tuple[tuple[str, re.Pattern[str], Callable[..., Answer]], ...] = tuple(
    (method, re.compile(rest), view)
    for method, rest, view in (
        ("GET", r"/commits", list_commits),
        ("GET", r"/contents/(?P<path>.+)", get_contents),
        ("PUT", r"/contents/(?P<path>.+)", put_contents),
        ("GET", r"/git/(?:ref|refs)/heads/(?P<branch>.+)", get_ref),
        ("GET", r"/git/matching-refs/heads/(?P<prefix>.*)", matching_refs),
        ("POST", r"/git/refs", create_ref),
        ("GET", r"/pulls", list_pulls),
        ("GET", r"/pulls/(?P<number>\d{1,9})", get_pull),
        ("POST", r"/pulls", create_pull),
    )
)


def answer(asked: Asked, rest: str) -> Answer | None:
    """Answer a request whose path ends with `rest`, slashes in names quoted or not; None where no route fits."""
    rest = unquote(rest)
    for method, pattern, view in CONTENT_ROUTES:
        if method == asked.request.method and (match := pattern.fullmatch(rest)):
            asked.require_read()
            return view(asked, **match.groupdict())
    return None
