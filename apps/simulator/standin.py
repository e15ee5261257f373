"""A local stand-in for GitHub: the App API, dispatches, people who sign in, and the OIDC issuer of GitHub Actions.

It answers as GitHub answers, as far as the hub and its downstreams ask: shapes, status codes, refusals. Tests hold
it to that with the same client the hub uses. Loopback only, and never the real thing: `/_standin/…` and
`/_actions/…` hand out what on GitHub only a running workflow gets.
"""

import json
import re
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from apps.simulator.access import Access
from apps.simulator.answers import DOCS, Answers
from apps.simulator.checkruns import CheckRuns
from apps.simulator.commits import Commits
from apps.simulator.directory import Directory, RepositoryIds
from apps.simulator.dispatches import Dispatch, Dispatches
from apps.simulator.hooks import Hooks
from apps.simulator.oauth import OAuth
from apps.simulator.oidc import SigningKeys, new_key
from apps.simulator.people import People
from apps.simulator.wire import HOST, Answer, Refusal, Request, Server

__all__ = ["Dispatch", "GitHubStandIn", "LoggedRequest"]


@dataclass(frozen=True)
class LoggedRequest:
    """One request and the status it was answered with (0: no answer). `body` is parsed JSON where it is any."""

    method: str
    path: str
    status: int
    body: Any


@dataclass
class _Failure:
    path: re.Pattern[str]
    status: int
    times: int
    message: str


class GitHubStandIn:
    """One GitHub on 127.0.0.1. Start it with `start()` or as a context manager; `stop()` ends its threads.

    `people` are its users, `oauth` what they sign in with. Knobs: `delay_seconds` slows every answer; `fail()` spoils
    some; `on_dispatch` is called with each accepted Dispatch, in order, on one background thread, after the 204 was
    sent: it should return soon.
    """

    def __init__(
        self,
        *,
        app_id: str,
        app_private_key: str,
        oidc_private_key: str | None = None,
        port: int = 0,
        on_dispatch: Callable[[Dispatch], None] | None = None,
        keep: int = 500,
    ) -> None:
        """Keys are PEM text; without `oidc_private_key` one is made. `port` 0: any free one, kept from then on.

        `keep`: how many requests and dispatches are remembered. Raises ValueError for a key that is no RSA key.
        """
        self.port = port
        self.delay_seconds = 0.0
        self._keys = SigningKeys(oidc_private_key or new_key())
        self._directory = Directory()
        self._dispatches = Dispatches(keep, on_dispatch)
        self.people = People()
        self.checks = CheckRuns()
        self.commits = Commits()
        self.hooks = Hooks()
        self.oauth = OAuth(app_id, app_private_key, self.people, lambda: self.url)
        self._answers = Answers(
            access=Access(app_id, app_private_key),
            directory=self._directory,
            keys=self._keys,
            dispatches=self._dispatches,
            oauth=self.oauth,
            checks=self.checks,
            commits=self.commits,
            hooks=self.hooks,
            url=lambda: self.url,
        )
        self._lock = threading.Lock()
        self._failures: list[_Failure] = []
        self._requests: deque[LoggedRequest] = deque(maxlen=keep)
        self._server: Server | None = None
        self._stopping = threading.Event()

    # --- life -------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Listen. Raises OSError where the port is taken. A stopped stand-in starts again on its port."""
        self._stopping.clear()
        self._dispatches.start()
        self._server = Server(self.port, self._answer)
        self.port = self._server.port
        return self

    def stop(self) -> None:
        """Close every connection and end every thread. What it knows, it keeps."""
        self._stopping.set()
        if self._server is not None:
            self._server.end()
            self._server = None
        self._dispatches.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Base URL of the API, and the issuer of its OIDC tokens. Known once it was started, or with a fixed port."""
        if not self.port:
            raise RuntimeError("The stand-in has no port before start()")
        return f"http://{HOST}:{self.port}"

    # --- what exists ------------------------------------------------------------------------------------------

    def add_repository(
        self,
        full_name: str,
        *,
        installed: bool = True,
        private: bool = False,
        repository_id: int | None = None,
        owner_id: int | None = None,
    ) -> RepositoryIds:
        """Register `owner/name`, or change `installed`/`private` of a known one. Ids left out are made up."""
        return self._directory.add(
            full_name, installed=installed, private=private, repository_id=repository_id, owner_id=owner_id
        ).ids

    def rename_repository(self, old: str, new: str) -> RepositoryIds:
        """Same repository, other name; the old name redirects. Raises KeyError where `old` is unknown."""
        return self._directory.rename(old, new).ids

    def replace_repository(self, full_name: str, *, installed: bool = True) -> RepositoryIds:
        """Same name, another owner and repository behind it: new ids. Raises KeyError where it is unknown."""
        return self._directory.replace(full_name, installed=installed).ids

    def mint_token(
        self,
        repository: str,
        *,
        audience: str,
        run_id: int | str,
        run_attempt: int | str = 1,
        workflow: str = "CI",
        **overrides: Any,
    ) -> str:
        """An OIDC token as a job of `repository` would get it. `overrides` replace claims; None leaves a claim out.

        Raises KeyError for an unknown repository.
        """
        found = self._directory.find(repository)
        if found is None:
            raise KeyError(repository)
        return self._answers.mint(
            found,
            audience=audience,
            run_id=str(run_id),
            run_attempt=int(run_attempt),
            workflow=workflow,
            overrides=overrides,
        )

    def sign(self, claims: dict[str, Any]) -> str:
        """Any claims as a token of this issuer, valid or not: for tests of what a hub refuses."""
        return self._keys.sign(claims)

    def rotate_keys(self, *, keep_old: bool = True) -> str:
        """Sign OIDC tokens with a new key; publish the old ones on only if `keep_old`. Returns the new kid."""
        return self._keys.rotate(keep_old=keep_old)

    # --- for tests --------------------------------------------------------------------------------------------

    @property
    def requests(self) -> list[LoggedRequest]:
        """The last requests, oldest first; each stands here before its answer leaves."""
        with self._lock:
            return list(self._requests)

    @property
    def dispatches(self) -> list[Dispatch]:
        """The last accepted dispatches, oldest first."""
        return self._dispatches.all()

    @property
    def on_dispatch(self) -> Callable[[Dispatch], None] | None:
        """Who is told of each accepted dispatch; may be changed at any time."""
        return self._dispatches.on_dispatch

    @on_dispatch.setter
    def on_dispatch(self, told: Callable[[Dispatch], None] | None) -> None:
        self._dispatches.on_dispatch = told

    def fail(self, path_regex: str, status: int = 502, times: int = 1, message: str = "Server Error") -> None:
        """Answer the next `times` requests whose path matches (re.search) with `status`; 0 hangs up unanswered."""
        with self._lock:
            self._failures.append(_Failure(re.compile(path_regex), status, times, message))

    def heal(self) -> None:
        """Forget what `fail()` still had to spoil."""
        with self._lock:
            self._failures.clear()

    # --- answering --------------------------------------------------------------------------------------------

    def _answer(self, request: Request) -> Answer:
        if self.delay_seconds:
            self._stopping.wait(self.delay_seconds)
        try:
            failure = self._take_failure(request.path)
            if failure is not None:
                raise Refusal(failure.status, failure.message)
            answer = self._answers.route(request)
        except Refusal as refusal:
            body = {"message": refusal.message, "documentation_url": DOCS, "status": str(refusal.status)}
            answer = Answer(refusal.status, body)
        with self._lock:
            self._requests.append(LoggedRequest(request.method, request.path, answer.status, _readable(request.body)))
        return answer

    def _take_failure(self, path: str) -> _Failure | None:
        with self._lock:
            for failure in self._failures:
                if failure.times > 0 and failure.path.search(path):
                    failure.times -= 1
                    return failure
        return None


def _readable(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return body.decode(errors="replace")
