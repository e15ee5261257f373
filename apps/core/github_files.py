"""Files, branches and pull requests of one repository, through the App's installation on it."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from github import GithubException
from github.ContentFile import ContentFile
from github.PullRequest import PullRequest
from github.Repository import Repository

from apps.core.github import Answer, GitHubClient, GitHubRefused, GitHubUnavailable


@dataclass(frozen=True)
class Commit:
    """A commit, without whoever made it."""

    sha: str
    at: datetime.datetime


@dataclass(frozen=True)
class Blob:
    """A file's content, and the id that git gives to it."""

    sha: str
    content: bytes


@dataclass(frozen=True)
class Pull:
    """A pull request as GitHub has it now. `is_merged` is GitHub's word: a bot that lands commits only closes."""

    number: int
    url: str
    title: str
    is_open: bool
    is_merged: bool
    opened_at: datetime.datetime
    merge_sha: str


class RepositoryFiles:
    """One repository's files and pull requests. Every method raises GitHubUnavailable or GitHubRefused."""

    def __init__(self, client: GitHubClient, full_name: str) -> None:
        self._client = client
        self._full_name = full_name

    def _ask(self, question: Callable[[Repository], Answer]) -> Answer:
        """What the library's own repository answers to the App's installation on it."""
        return self._client.ask(self._full_name, lambda github: question(github.get_repo(self._full_name)))

    def newest_commit(self, path: str, *, branch: str) -> Commit:
        """The newest commit of a branch that changed a file: `GET /repos/{owner}/{repo}/commits?path=`.

        No such commit is a refusal, 404.
        """

        def read(repository: Repository) -> Commit:
            _, rows = repository.requester.requestJsonAndCheck(
                "GET", f"{repository.url}/commits", parameters={"sha": branch, "path": path, "per_page": 1}
            )
            if not isinstance(rows, list):  # something that stands before GitHub has answered
                raise GitHubUnavailable("GitHub's answer is no list of commits")
            if not rows:
                raise GitHubRefused(404, f"no commit of {branch} has {path}")
            at = datetime.datetime.fromisoformat(rows[0]["commit"]["committer"]["date"])
            return Commit(rows[0]["sha"], at)

        return self._ask(read)

    def read(self, path: str, *, ref: str) -> Blob:
        """A file at a branch or commit: `GET /repos/{owner}/{repo}/contents/{path}?ref=`. Above 1 MB: a refusal."""

        def read(repository: Repository) -> Blob:
            found = repository.get_contents(path, ref=ref)
            if not isinstance(found, ContentFile) or found.type != "file":
                raise GitHubRefused(404, f"{path} is no file")
            if found.encoding != "base64":
                raise GitHubRefused(413, f"{path} is larger than 1 MB")
            return Blob(found.sha, found.decoded_content)

        return self._ask(read)

    def branch_head(self, branch: str) -> str | None:
        """The newest commit of a branch; None where there is no such branch."""

        def read(repository: Repository) -> str | None:
            try:
                return repository.get_git_ref(f"heads/{branch}").object.sha
            except GithubException as error:
                if error.status == 404:
                    return None
                raise

        return self._ask(read)

    def branches(self, prefix: str, *, limit: int) -> list[str]:
        """Up to `limit` branches whose names begin so: `GET /repos/{owner}/{repo}/git/matching-refs/heads/{prefix}`."""

        def read(repository: Repository) -> list[str]:
            refs = repository.get_git_matching_refs(f"heads/{prefix}")
            return [ref.ref.removeprefix("refs/heads/") for ref in islice(refs, limit)]

        return self._ask(read)

    def create_branch(self, branch: str, *, sha: str) -> None:
        self._ask(lambda repository: repository.create_git_ref(f"refs/heads/{branch}", sha))

    def write(self, path: str, content: bytes, *, branch: str, replaces: str, message: str) -> None:
        """Commit a file to a branch; `replaces` is the blob that it was made from."""
        self._ask(lambda repository: repository.update_file(path, message, content, replaces, branch=branch))

    def pull(self, number: int) -> Pull:
        return self._ask(lambda repository: _pull(repository.get_pull(number)))

    def pull_of_branch(self, branch: str, *, state: str = "all") -> Pull | None:
        """The newest pull request from a branch of this repository; None without one."""
        head = f"{self._full_name.split('/')[0]}:{branch}"

        def read(repository: Repository) -> Pull | None:
            found = repository.get_pulls(state=state, head=head, sort="created", direction="desc")
            return next((_pull(one) for one in found), None)

        return self._ask(read)

    def open_pull(self, *, title: str, body: str, branch: str, base: str) -> Pull:
        return self._ask(
            lambda repository: _pull(repository.create_pull(base=base, head=branch, title=title, body=body))
        )


def _pull(found: PullRequest) -> Pull:
    return Pull(
        number=found.number,
        url=found.html_url,
        title=found.title,
        is_open=found.state == "open",
        is_merged=found.merged_at is not None,
        opened_at=found.created_at,
        merge_sha=found.merge_commit_sha or "",
    )
