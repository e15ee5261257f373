"""The hub's one way to GitHub: a GitHub App through PyGithub, against a configurable base URL.

PyGithub would sleep between writes and retry POSTs by itself; both are switched off, because retries belong to
the outbox (docs/adr/0002).
"""

import contextlib
import datetime
import email.utils
import json
import logging
import re
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar, cast
from urllib.parse import parse_qs, quote, urlsplit

import jwt
import requests
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from django.conf import settings
from github import Auth, Github, GithubException, GithubIntegration, RateLimitExceededException
from github.InstallationAuthorization import InstallationAuthorization

from apps.core import clock

log = logging.getLogger(__name__)

_SECONDS = re.compile(r"[0-9]{1,12}", re.ASCII)
TIMEOUT_SECONDS = 10
PER_PAGE, PAGES_MAX = 100, 10
# Of the App's log of webhooks, which holds those of every repository it is installed on.
LOG_PAGES_MAX = 100
TOKEN_RENEWED_BEFORE = datetime.timedelta(minutes=2)
# What GitHub asks for after a rate limit that does not say how long it lasts.
UNSAID_WAIT_SECONDS = 60.0
UNAUTHORIZED = 401

Answer = TypeVar("Answer")


class GitHubUnavailable(Exception):
    """GitHub did not answer, or answered 5xx or a rate limit: the same request may succeed later.

    `wait_seconds`: how long GitHub asks to wait at least; 0 where it does not ask. It may be absurd: cap it.
    """

    def __init__(self, detail: str, wait_seconds: float = 0.0) -> None:
        super().__init__(detail)
        self.wait_seconds = wait_seconds


class GitHubRefused(Exception):
    """GitHub answered no: `status` is its code. The same request would be refused again."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"GitHub answered {status}: {detail}")
        self.status = status


class GitHubNotInstalled(GitHubRefused):
    """The App does not reach the repository, or there is no such repository: GitHub does not say which."""

    def __init__(self, full_name: str) -> None:
        super().__init__(
            404,
            f"the hub's GitHub App is not installed on {full_name}, or there is no such repository. "
            "Its owner installs the App with access to it; then send again.",
        )


@dataclass(frozen=True)
class RepositoryIdentity:
    """What GitHub says a name stands for: numeric ids survive renames, and never pass to another repository."""

    full_name: str
    github_id: int
    github_owner_id: int


@dataclass(frozen=True)
class RunJob:
    """One job of a workflow run as GitHub records it. `conclusion` is '' until `status` is completed."""

    check_run_id: str
    name: str
    status: str
    conclusion: str


# Pages of 100 that are read of one run: GitHub itself makes at most 256 jobs of a matrix.
RUN_JOBS_PAGES = 10


@dataclass(frozen=True)
class CheckRun:
    """A check run as GitHub shows it. `conclusion` is '' while it is not completed; `started_at` None if not said."""

    github_id: int
    name: str
    status: str
    conclusion: str
    app_id: int
    app_name: str
    started_at: datetime.datetime | None
    app_client_id: str = ""


@dataclass(frozen=True)
class Compared:
    """How `head` stands to `base`: it has `ahead_by` commits more and `behind_by` fewer since the merge base.

    `commits` are those it has more, oldest first; fewer than `ahead_by` where GitHub has more pages than are read.
    """

    base_sha: str
    merge_base_sha: str
    ahead_by: int
    behind_by: int
    commits: tuple[str, ...]


@dataclass(frozen=True)
class HookDelivery:
    """One attempt to deliver a webhook, as GitHub's log has it. `github_id` is the attempt's, `delivery_id` the
    webhook's own: a redelivery has it again. `status` is what the receiver answered, 0 for nothing."""

    github_id: int
    delivery_id: str
    at: datetime.datetime
    event: str
    status: int
    repository_id: int | None
    action: str | None = None

    @property
    def was_taken(self) -> bool:
        return 200 <= self.status < 300


class GitHubClient:
    """Acts as the App's installation on one repository at a time. Safe to share between threads.

    PyGithub's objects are not: a connection keeps the request it is about to send. So each call has its own, and only
    installation tokens are shared.
    """

    def __init__(self, *, api_url: str, app_id: str, private_key: str) -> None:
        self._app = (app_id, private_key)
        self._base_url = api_url
        self._app_key: RSAPrivateKey | None = None
        self._app_key_lock = threading.Lock()
        self._tokens: dict[str, InstallationAuthorization] = {}
        self._locks: dict[str, threading.Lock] = {}

    def ask(
        self,
        full_name: str,
        question: Callable[[Github], Answer],
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        renews_on: Collection[int] = (UNAUTHORIZED,),
    ) -> Answer:
        """GitHub's answer to `question`, which the App's installation on a repository asks: one request or several.

        A kept token that GitHub no longer takes (a status of `renews_on`) is replaced once, and all of it asked again.
        Raises GitHubRefused, or GitHubUnavailable: so too where GitHub does not take a new token, which says nothing
        about what was asked. Each request is bounded by `timeout_seconds`.
        """
        key = full_name.lower()
        may_renew = key in self._tokens
        while True:
            try:
                with _translated(), self._github(full_name, timeout_seconds) as github:
                    return question(github)
            except GitHubRefused as refused:
                if refused.status in renews_on:
                    self._tokens.pop(key, None)
                    if may_renew:
                        may_renew = False
                        continue
                if refused.status == UNAUTHORIZED:
                    raise GitHubUnavailable(str(refused)) from refused
                raise

    def send_dispatch(self, full_name: str, *, event_type: str, client_payload: dict[str, Any]) -> None:
        """`POST /repos/{owner}/{repo}/dispatches`. Returns when GitHub accepted it.

        Raises GitHubUnavailable or GitHubRefused; GitHubNotInstalled where the App does not reach the repository.
        """

        def post(github: Github) -> None:
            # Not create_repository_dispatch(): it answers False to every failure and drops GitHub's words.
            status, headers, output = github.requester.requestJson(
                "POST",
                f"/repos/{full_name}/dispatches",
                input={"event_type": event_type, "client_payload": client_payload},
            )
            if status != 204:
                # A renamed repository answers 307: nothing was dispatched, and nothing here follows it.
                raise github.requester.createException(status, headers, _object(output))

        # The App was removed, or installed anew: only a new token tells which.
        self.ask(full_name, post, renews_on=(UNAUTHORIZED, 403, 404))

    def jobs_of_run(self, full_name: str, *, run_id: str, run_attempt: int) -> list[RunJob]:
        """`GET /repos/{owner}/{repo}/actions/runs/{id}/attempts/{n}/jobs`, every page up to RUN_JOBS_PAGES.

        Raises GitHubUnavailable or GitHubRefused.
        """
        path = f"/repos/{full_name}/actions/runs/{run_id}/attempts/{run_attempt}/jobs"

        def read(github: Github) -> list[RunJob]:
            found: list[RunJob] = []
            for page in range(1, RUN_JOBS_PAGES + 1):
                _, body = github.requester.requestJsonAndCheck("GET", path, parameters={"per_page": 100, "page": page})
                found += [_run_job(row) for row in body["jobs"]]
                if len(found) >= body["total_count"]:
                    break
            return found

        return self.ask(full_name, read)

    def knows_commit(self, full_name: str, sha: str) -> bool:
        """`GET /repos/{owner}/{repo}/git/commits/{sha}`: whether the repository has it. Raises GitHubUnavailable or
        GitHubRefused."""

        def read(github: Github) -> bool:
            status, headers, output = github.requester.requestJson("GET", f"/repos/{full_name}/git/commits/{sha}")
            if status in (404, 422):
                return False
            if status != 200:
                raise github.requester.createException(status, headers, _object(output))
            return True

        return self.ask(full_name, read)

    def repository_identity(self, full_name: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> RepositoryIdentity:
        """`GET /repos/{owner}/{repo}` as the App's installation there, each of up to three requests within
        `timeout_seconds`. Raises GitHubUnavailable or GitHubRefused."""

        def read(github: Github) -> RepositoryIdentity:
            # The client is lazy: until it is completed, a name is only what we asked for.
            repo = github.get_repo(full_name).complete()
            return RepositoryIdentity(repo.full_name, repo.id, repo.owner.id)

        return self.ask(full_name, read, timeout_seconds=timeout_seconds)

    def create_check_run(self, full_name: str, fields: Mapping[str, Any]) -> int:
        """`POST /repos/{owner}/{repo}/check-runs`, `fields` as GitHub documents them. Returns the check run's id.

        Raises GitHubUnavailable or GitHubRefused.
        """
        return int(self._ask_about(full_name, "POST", "check-runs", fields, expects=201)["id"])

    def update_check_run(self, full_name: str, check_run_id: int, fields: Mapping[str, Any]) -> None:
        """`PATCH /repos/{owner}/{repo}/check-runs/{id}`. Raises GitHubUnavailable or GitHubRefused."""
        self._ask_about(full_name, "PATCH", f"check-runs/{check_run_id}", fields, expects=200)

    def check_runs_named(self, full_name: str, head_sha: str, name: str) -> list[dict[str, Any]]:
        """`GET /repos/{owner}/{repo}/commits/{sha}/check-runs` of one name, at most 100, whoever made them.

        Raises GitHubUnavailable or GitHubRefused.
        """
        query = f"check_name={quote(name, safe='')}&filter=all&per_page=100"
        found = self._ask_about(full_name, "GET", f"commits/{head_sha}/check-runs?{query}", None, expects=200)
        return list(found["check_runs"])

    def rerun(self, full_name: str, run_id: str, scope: str) -> None:
        """`POST /repos/{owner}/{repo}/actions/runs/{run_id}/{scope}`; `scope` is `rerun` or `rerun-failed-jobs`.

        Raises GitHubUnavailable or GitHubRefused (403 where the run is not over).
        """
        self._ask_about(full_name, "POST", f"actions/runs/{quote(run_id, safe='')}/{scope}", {}, expects=201)

    def _ask_about(
        self, full_name: str, method: str, path: str, fields: Mapping[str, Any] | None, *, expects: int
    ) -> dict[str, Any]:
        """One request about a repository, as the App's installation there. Any status but `expects` is a refusal."""

        def send(github: Github) -> dict[str, Any]:
            body = None if fields is None else dict(fields)
            status, headers, output = github.requester.requestJson(method, f"/repos/{full_name}/{path}", input=body)
            if status != expects:
                raise github.requester.createException(status, headers, _object(output))
            return _object(output)

        return self.ask(full_name, send)

    def check_runs(self, full_name: str, sha: str) -> list[CheckRun]:
        """`GET /repos/{owner}/{repo}/commits/{sha}/check-runs`: the newest of each name and App, all pages up to
        PAGES_MAX. Raises GitHubUnavailable or GitHubRefused."""

        def read(github: Github) -> list[CheckRun]:
            found: list[CheckRun] = []
            for page in range(1, PAGES_MAX + 1):
                path = f"/repos/{full_name}/commits/{sha}/check-runs?filter=latest&per_page={PER_PAGE}&page={page}"
                body = _get(github, path)
                found += [_check_run(row) for row in body["check_runs"]]
                if page * PER_PAGE >= body["total_count"]:
                    break
            return found

        return self.ask(full_name, read)

    def compare(self, full_name: str, base: str, head: str) -> Compared:
        """`GET /repos/{owner}/{repo}/compare/{base}...{head}`, up to PAGES_MAX pages. Each name a commit or a branch.
        Raises GitHubUnavailable or GitHubRefused."""
        path = f"/repos/{full_name}/compare/{base}...{head}?per_page={PER_PAGE}"

        def read(github: Github) -> Compared:
            body = _get(github, path)
            rows = list(body["commits"])
            for page in range(2, PAGES_MAX + 1):
                if len(rows) >= body["total_commits"]:
                    break
                rows += _get(github, f"{path}&page={page}")["commits"]
            return Compared(
                base_sha=str(body["base_commit"]["sha"]),
                merge_base_sha=str(body["merge_base_commit"]["sha"]),
                ahead_by=int(body["ahead_by"]),
                behind_by=int(body["behind_by"]),
                commits=tuple(str(row["sha"]) for row in rows),
            )

        return self.ask(full_name, read)

    def hook_deliveries(self, *, since: datetime.datetime, cursor: str = "") -> tuple[list[HookDelivery], str]:
        """`GET /app/hook/deliveries` as the App: attempts since then, newest first, at most LOG_PAGES_MAX pages; and
        the cursor that leads on from there, '' where those are all. Raises GitHubUnavailable or GitHubRefused."""
        with _translated(), self._as_app() as github:
            found: list[HookDelivery] = []
            for _ in range(LOG_PAGES_MAX):
                path = f"/app/hook/deliveries?per_page={PER_PAGE}" + (f"&cursor={quote(cursor)}" if cursor else "")
                status, headers, output = github.requester.requestJson("GET", path)
                if status != requests.codes.ok:
                    raise github.requester.createException(status, headers, _object(output))
                page = [_hook_delivery(row) for row in json.loads(output)]
                found += [one for one in page if one.at >= since]
                cursor = _next_cursor(headers.get("link", ""))
                if not cursor or any(one.at < since for one in page):
                    return found, ""
            return found, cursor

    def redeliver(self, github_id: int) -> None:
        """`POST /app/hook/deliveries/{id}/attempts` as the App: GitHub sends that webhook again, soon.
        Raises GitHubUnavailable or GitHubRefused."""
        with _translated(), self._as_app() as github:
            path = f"/app/hook/deliveries/{github_id}/attempts"
            status, headers, output = github.requester.requestJson("POST", path)
            if status != requests.codes.accepted:
                raise github.requester.createException(status, headers, _object(output))

    def _as_app(self) -> Github:
        if not all(self._app):
            raise GitHubUnavailable("no GitHub App is set up: ACCELHUB_GITHUB_APP_ID, ACCELHUB_GITHUB_APP_PRIVATE_KEY")
        return Github(auth=Auth.AppAuth(*self._app), **self._options(TIMEOUT_SECONDS))

    def _github(self, full_name: str, timeout_seconds: float) -> Github:
        return Github(auth=Auth.Token(self._token(full_name, timeout_seconds)), **self._options(timeout_seconds))

    def _token(self, full_name: str, timeout_seconds: float) -> str:
        """The installation's token for a repository: kept until shortly before it runs out, asked for once at a time.

        The installation is asked for with it, so an App that was installed anew is found by the next token.
        """
        if not all(self._app):
            raise GitHubUnavailable("no GitHub App is set up: ACCELHUB_GITHUB_APP_ID, ACCELHUB_GITHUB_APP_PRIVATE_KEY")
        key = full_name.lower()
        with self._locks.setdefault(key, threading.Lock()):
            known = self._tokens.get(key)
            if known is None or known.expires_at - clock.real(clock.now()) < TOKEN_RENEWED_BEFORE:
                auth = Auth.AppAuth(self._app[0], sign_func=self._sign)
                app = GithubIntegration(auth=auth, **self._options(timeout_seconds))
                with contextlib.closing(app):
                    known = app.get_access_token(_installation_of(app, full_name))
                self._tokens[key] = known
            return known.token

    def _sign(self, claims: dict[str, Any]) -> str:
        """The App's own JWT. Its key is read once: reading checks it, and takes longer than all the rest of a send."""
        with self._app_key_lock:
            if self._app_key is None:
                key = load_pem_private_key(self._app[1].encode(), password=None)
                self._app_key = cast("RSAPrivateKey", key)
        return jwt.encode(claims, self._app_key, algorithm="RS256")

    def _options(self, timeout_seconds: float) -> dict[str, Any]:
        return {
            "base_url": self._base_url,
            "timeout": timeout_seconds,
            "lazy": True,
            "retry": None,
            "seconds_between_requests": None,
            "seconds_between_writes": None,
        }


def _installation_of(app: GithubIntegration, full_name: str) -> int:
    try:
        return app.get_repo_installation(*full_name.split("/")).id
    except GithubException as error:
        if error.status == 404:
            raise GitHubNotInstalled(full_name) from error
        raise


def _run_job(row: dict[str, Any]) -> RunJob:
    # A job's id is its check run's; the address is what GitHub documents.
    check_run_id = str(row.get("check_run_url") or row["id"]).rsplit("/", 1)[-1]
    return RunJob(check_run_id, str(row["name"]), str(row["status"]), str(row["conclusion"] or ""))


@dataclass(frozen=True)
class UserIdentity:
    """What GitHub says a login stands for: the number survives renames, and never passes to another account."""

    login: str
    github_id: int


class GitHubUser:
    """Asks GitHub with a signed-in user's own token, so that the answers are theirs. Without one: what anyone may ask.

    All methods raise GitHubUnavailable or GitHubRefused.
    """

    def __init__(self, *, api_url: str, token: str = "") -> None:
        self._github = Github(
            auth=Auth.Token(token) if token else None,
            base_url=api_url,
            timeout=TIMEOUT_SECONDS,
            lazy=True,
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
        )

    def identity_of(self, login: str) -> UserIdentity:
        """`GET /users/{login}`."""
        with _translated(), self._github as github:
            user = github.get_user(login).complete()
            return UserIdentity(user.login, user.id)

    def is_in_team(self, *, organisation: str, team: str, login: str) -> bool:
        """`GET /orgs/{org}/teams/{slug}/memberships/{login}`: an accepted membership. An invitation is none."""
        with _translated(), self._github as github:
            path = f"/orgs/{organisation}/teams/{team}/memberships/{login}"
            status, headers, output = github.requester.requestJson("GET", path)
            if status in (403, 404):  # not a member, or not for this token to know: either way unproven
                return False
            if status != 200:
                raise github.requester.createException(status, headers, _object(output))
            return _object(output).get("state") == "active"

    def may_push(self, identity: RepositoryIdentity) -> bool:
        """`GET /repos/{owner}/{repo}`: whether the user may write to the repository of this id, whatever bears its
        name now."""
        with _translated(), self._github as github:
            try:
                repo = github.get_repo(identity.full_name).complete()
            except GithubException as error:
                if error.status == 404:  # gone, or private and not theirs
                    return False
                raise
            permissions: Any = repo.permissions  # None where the answer has none
            return repo.id == identity.github_id and permissions is not None and permissions.push is True


class _translated:  # noqa: N801  reads as a word at its use
    """Turns the library's and the network's exceptions into our two."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        match error:
            case GithubException() if _is_rate_limit(error):
                wait = _asked_wait(error.headers or {}) or UNSAID_WAIT_SECONDS
                raise GitHubUnavailable("GitHub's rate limit is reached", wait) from error
            case GithubException(status=status) if status >= 500:
                raise GitHubUnavailable(f"GitHub answered {status}", _asked_wait(error.headers or {})) from error
            case GithubException(status=status):
                raise GitHubRefused(status, _message(error)) from error
            case requests.RequestException():
                raise GitHubUnavailable(f"GitHub did not answer: {type(error).__name__}") from error
            case GitHubUnavailable() | GitHubRefused():
                return
            case Exception():
                # A key that cannot be read, an answer of another shape: no caller is the worse for asking.
                log.exception("GitHub could not be asked", exc_info=error)
                raise GitHubUnavailable(f"GitHub could not be asked: {type(error).__name__}") from error


def _is_rate_limit(error: GithubException) -> bool:
    """GitHub limits with 429, or with 403 and either its words or its headers."""
    headers = error.headers or {}
    is_said = isinstance(error, RateLimitExceededException)
    is_empty = headers.get("x-ratelimit-remaining") == "0"
    return error.status == 429 or (error.status == 403 and (is_said or is_empty or "retry-after" in headers))


def _asked_wait(headers: Mapping[str, Any]) -> float:
    """Seconds until GitHub wants to be asked again, by `Retry-After` (seconds or a date), else by `X-RateLimit-Reset`
    where nothing remains; 0 where it does not say, or says what cannot be read."""
    after = str(headers.get("retry-after", ""))
    if _SECONDS.fullmatch(after):
        return float(after)
    if date := email.utils.parsedate_tz(after):
        return max(0.0, email.utils.mktime_tz(date) - _epoch())
    reset = str(headers.get("x-ratelimit-reset", ""))
    if headers.get("x-ratelimit-remaining") == "0" and _SECONDS.fullmatch(reset):
        return max(0.0, float(reset) - _epoch())
    return 0.0


def _epoch() -> float:
    return clock.real(clock.now()).timestamp()


def _get(github: Github, path: str) -> Any:
    """The JSON of one GET. Raises GithubException for anything but 200."""
    status, headers, output = github.requester.requestJson("GET", path)
    if status != requests.codes.ok:
        raise github.requester.createException(status, headers, _object(output))
    return json.loads(output)


def _check_run(row: dict[str, Any]) -> CheckRun:
    started = row.get("started_at")
    return CheckRun(
        github_id=int(row["id"]),
        name=str(row["name"]),
        status=str(row["status"]),
        conclusion=str(row.get("conclusion") or ""),
        app_id=int(row["app"]["id"]),
        app_name=str(row["app"].get("name", "")),
        started_at=datetime.datetime.fromisoformat(started) if started else None,
        app_client_id=str(row["app"].get("client_id") or ""),
    )


def _hook_delivery(row: dict[str, Any]) -> HookDelivery:
    return HookDelivery(
        github_id=int(row["id"]),
        delivery_id=str(row["guid"]),
        at=datetime.datetime.fromisoformat(row["delivered_at"]),
        event=str(row["event"]),
        status=int(row["status_code"]),
        repository_id=row.get("repository_id"),
        action=row.get("action"),
    )


def _next_cursor(link: str) -> str:
    """Where the log's next page begins, from GitHub's Link header; '' where there is none."""
    for part in requests.utils.parse_header_links(link):
        if part.get("rel") == "next":
            return parse_qs(urlsplit(part["url"]).query).get("cursor", [""])[0]
    return ""


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
