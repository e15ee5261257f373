"""The hub's one way to GitHub: a GitHub App through PyGithub, against a configurable base URL.

PyGithub would sleep between writes and retry POSTs by itself; both are switched off, because retries belong to
the outbox (docs/adr/0002).
"""

import json
import logging
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import requests
from django.conf import settings
from github import Auth, Github, GithubException, GithubIntegration, RateLimitExceededException

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 10


class GitHubUnavailable(Exception):
    """GitHub did not answer, or answered 5xx or a rate limit: the same request may succeed later."""


class GitHubRefused(Exception):
    """GitHub answered no: `status` is its code. The same request would be refused again."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"GitHub answered {status}: {detail}")
        self.status = status


@dataclass(frozen=True)
class RepositoryIdentity:
    """What GitHub says a name stands for: numeric ids survive renames, and never pass to another repository."""

    full_name: str
    github_id: int
    github_owner_id: int


class GitHubClient:
    """Acts as the App's installation on one repository at a time."""

    def __init__(self, *, api_url: str, app_id: str, private_key: str) -> None:
        self._options: dict[str, Any] = {
            "base_url": api_url,
            "timeout": TIMEOUT_SECONDS,
            "retry": None,
            "seconds_between_requests": None,
            "seconds_between_writes": None,
        }
        self._app = (app_id, private_key)
        self._by_repository: dict[str, Github] = {}

    def send_dispatch(self, full_name: str, *, event_type: str, client_payload: dict[str, Any]) -> None:
        """`POST /repos/{owner}/{repo}/dispatches`. Returns when GitHub accepted it.

        Raises GitHubUnavailable or GitHubRefused.
        """
        with _translated():
            # Not create_repository_dispatch(): it answers False to every failure and drops GitHub's words.
            requester = self._github(full_name).requester
            status, headers, output = requester.requestJson(
                "POST",
                f"/repos/{full_name}/dispatches",
                input={"event_type": event_type, "client_payload": client_payload},
            )
            if status != 204:
                # A renamed repository answers 307: nothing was dispatched, and nothing here follows it.
                raise requester.createException(status, headers, _object(output))

    def repository_identity(self, full_name: str) -> RepositoryIdentity:
        """`GET /repos/{owner}/{repo}` as the App's installation there. Raises GitHubUnavailable or GitHubRefused."""
        with _translated():
            # The client is lazy: until it is completed, a name is only what we asked for.
            repo = self._github(full_name).get_repo(full_name).complete()
            return RepositoryIdentity(repo.full_name, repo.id, repo.owner.id)

    @cached_property
    def _integration(self) -> GithubIntegration:
        if not all(self._app):
            raise GitHubUnavailable("no GitHub App is set up: ACCELHUB_GITHUB_APP_ID, ACCELHUB_GITHUB_APP_PRIVATE_KEY")
        return GithubIntegration(auth=Auth.AppAuth(*self._app), **self._options)

    def _github(self, full_name: str) -> Github:
        # PyGithub keeps the installation token inside and asks for the next one when it runs out.
        key = full_name.lower()
        if key not in self._by_repository:
            owner, name = full_name.split("/")
            installation = self._integration.get_repo_installation(owner, name)
            auth = self._integration.auth
            assert isinstance(auth, Auth.AppAuth)
            self._by_repository[key] = Github(
                auth=auth.get_installation_auth(installation.id, requester=self._integration.requester),
                lazy=True,
                **self._options,
            )
        return self._by_repository[key]


class _translated:  # noqa: N801  reads as a word at its use
    """Turns the library's and the network's exceptions into our two."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        match error:
            case RateLimitExceededException():
                raise GitHubUnavailable("GitHub's rate limit is reached") from error
            case GithubException(status=status) if status >= 500 or status == 429:
                raise GitHubUnavailable(f"GitHub answered {status}") from error
            case GithubException(status=status):
                raise GitHubRefused(status, _message(error)) from error
            case requests.RequestException():
                raise GitHubUnavailable(f"GitHub did not answer: {type(error).__name__}") from error


def _object(output: str) -> dict[str, Any]:
    """GitHub's error body; what stands before GitHub may answer in HTML."""
    try:
        body = json.loads(output)
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {}


def _message(error: GithubException) -> str:
    data = error.data
    return str(data.get("message", "")) if isinstance(data, dict) else str(data)[:200]


@lru_cache(maxsize=1)
def client() -> GitHubClient:
    """The process's client, as the settings describe it."""
    return GitHubClient(
        api_url=settings.GITHUB_API_URL,
        app_id=settings.GITHUB_APP_ID,
        private_key=settings.GITHUB_APP_PRIVATE_KEY,
    )
