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
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from apps.simulator import buildkite
from apps.simulator.access import Access
from apps.simulator.answers import DOCS, Answers
from apps.simulator.checks import Checks
from apps.simulator.commits import Commits
from apps.simulator.contents import Contents, RepositoryContents
from apps.simulator.directory import Directory, RepositoryIds
from apps.simulator.dispatches import Dispatch, Dispatches
from apps.simulator.faults import Fault, Faults, Kind
from apps.simulator.hooks import Hooks
from apps.simulator.issuer import Issuer
from apps.simulator.oauth import OAuth
from apps.simulator.oidc import SigningKeys, new_key
from apps.simulator.people import People
from apps.simulator.runs import RunJob, Runs
from apps.simulator.wire import HOST, NO_ANSWER, Answer, Refusal, Request, Server

__all__ = ["Dispatch", "GitHubStandIn", "Kind", "LoggedRequest"]

# Run attempts whose jobs are remembered: weeks of a demo.
KEPT_RUNS = 20_000


@dataclass(frozen=True)
class LoggedRequest:
    """One request and the status it was answered with (0: no answer). `body` is parsed JSON where it is any."""

    method: str
    path: str
    status: int
    body: Any


# What GitHub says with each kind of refusal: status and message.
_REFUSALS = {
    Kind.FAIL: (502, "Server Error"),
    Kind.LIMIT: (403, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."),
    Kind.EXHAUST: (403, "API rate limit exceeded for installation ID 1."),
    Kind.DROP: (NO_ANSWER, ""),
}


class GitHubStandIn:
    """One GitHub on 127.0.0.1. Start it with `start()` or as a context manager; `stop()` ends its threads.

    `people` are its users, `oauth` what they sign in with. Knobs: `delay_seconds` slows every answer; `spoil()` lets
    some go wrong; `on_dispatch` is called with each accepted Dispatch, in order, on one background thread, after the
    204 was sent: it should return soon.
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
        seed: int = 0,
    ) -> None:
        """Keys are PEM text; without `oidc_private_key` one is made. `port` 0: any free one, kept from then on.

        `keep`: how many requests and dispatches are remembered. `seed`: the luck of `spoil()`. Raises ValueError for a
        key that is no RSA key.
        """
        self.port = port
        self.delay_seconds = 0.0
        self._keys = SigningKeys(oidc_private_key or new_key())
        self._issuer = Issuer(self._keys, lambda: self.url)
        self._directory = Directory()
        self._contents = Contents()
        self._dispatches = Dispatches(keep, on_dispatch)
        self.people = People()
        self.checks = Checks()
        self.commits = Commits()
        self.hooks = Hooks()
        self.oauth = OAuth(app_id, app_private_key, self.people, lambda: self.url)
        self._runs = Runs(KEPT_RUNS)
        self._answers = Answers(
            access=Access(app_id, app_private_key),
            directory=self._directory,
            issuer=self._issuer,
            dispatches=self._dispatches,
            oauth=self.oauth,
            runs=self._runs,
            contents=self._contents,
            checks=self.checks,
            commits=self.commits,
            hooks=self.hooks,
            url=lambda: self.url,
        )
        self._lock = threading.Lock()
        self._faults = Faults(seed)
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

    def has_repository(self, full_name: str) -> bool:
        """Whether a repository is called so now."""
        return self._directory.find(full_name) is not None

    def replace_repository(self, full_name: str, *, installed: bool = True) -> RepositoryIds:
        """Same name, another owner and repository behind it: new ids. Raises KeyError where it is unknown."""
        return self._directory.replace(full_name, installed=installed).ids

    def record_job(
        self,
        repository: str,
        *,
        run_id: int | str,
        name: str,
        check_run_id: int | str,
        conclusion: str = "",
        status: str = "",
        run_attempt: int | str = 1,
    ) -> None:
        """Let a workflow run have this job: ended with `conclusion`, else in the given `status`, else in progress.

        Raises KeyError for an unknown repository.
        """
        status = status or ("completed" if conclusion else "in_progress")
        job = RunJob(name, str(check_run_id), status, conclusion)
        self._runs.record(self._id_of(repository), str(run_id), int(run_attempt), job)

    def add_commit(self, repository: str, sha: str) -> None:
        """Let a repository have this commit. Raises KeyError for an unknown repository."""
        self._runs.add_commit(self._id_of(repository), sha)

    def contents(self, full_name: str) -> RepositoryContents:
        """What a repository holds: files, branches, pull requests. Raises KeyError for an unknown one."""
        return self._contents.of(self._id_of(full_name))

    def _id_of(self, repository: str) -> int:
        found = self._directory.reached(repository)
        if found is None:
            raise KeyError(repository)
        return found.id

    def mint_token(
        self,
        repository: str,
        /,
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
        found = self._directory.reached(repository)
        if found is None:
            raise KeyError(repository)
        return self._issuer.mint(
            found,
            audience=audience,
            run_id=str(run_id),
            run_attempt=int(run_attempt),
            workflow=workflow,
            overrides=overrides,
        )

    @property
    def issuers(self) -> list[dict[str, str]]:
        """What a hub must trust to believe its tokens (ACCELHUB_OIDC_ISSUERS): its GitHub and its Buildkite."""
        return buildkite.issuers_at(self.url)

    def mint_buildkite_token(
        self, repository: str, /, *, audience: str, build_number: int, step: str = "test", **overrides: Any
    ) -> str:
        """An OIDC token as a Buildkite job that builds `repository` would get it; `overrides` as for `mint_token`.

        Raises KeyError for an unknown repository.
        """
        found = self._directory.reached(repository)
        if found is None:
            raise KeyError(repository)
        return self._issuer.mint_buildkite(
            found, audience=audience, build_number=build_number, step=step, overrides=overrides
        )

    def sign(self, claims: dict[str, Any]) -> str:
        """Any claims as a token of this issuer, valid or not: for tests of what a hub refuses."""
        return self._keys.sign(claims)

    def rotate_keys(self, *, keep_old: bool = True) -> str:
        """Sign OIDC tokens with a new key; publish the old ones on only if `keep_old`. Returns the new kid."""
        return self._keys.rotate(keep_old=keep_old)

    def open_pull_request(self, repository: str, number: int, head_sha: str) -> None:
        """Let a pull request be open at this commit, or move it there. Raises KeyError for an unknown repository."""
        found = self._directory.reached(repository)
        if found is None:
            raise KeyError(repository)
        self.checks.open_pull_request(found, number, head_sha)

    def add_foreign_check_run(self, repository: str, head_sha: str, name: str, *, is_app_gone: bool = False) -> None:
        """Let another App show a check run that is not over; of an App that is gone GitHub says null. Raises KeyError
        for an unknown repository."""
        found = self._directory.reached(repository)
        if found is None:
            raise KeyError(repository)
        self.checks.create(
            found, {"name": name, "head_sha": head_sha, "status": "in_progress"}, None if is_app_gone else {"id": 1}
        )

    def finish_runs(self) -> None:
        """Let every run that was asked to run again be over, and forget that it was asked."""
        self.checks.finish_runs()

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
    def check_runs(self) -> list[dict[str, Any]]:
        """Every check run, oldest first, as GitHub's API shows it."""
        return self.checks.all()

    @property
    def reruns(self) -> list[tuple[str, str, str]]:
        """(repository, run id, `rerun` or `rerun-failed-jobs`) of each that was accepted, oldest first."""
        return self.checks.reruns

    @property
    def on_dispatch(self) -> Callable[[Dispatch], None] | None:
        """Who is told of each accepted dispatch; may be changed at any time."""
        return self._dispatches.on_dispatch

    @on_dispatch.setter
    def on_dispatch(self, told: Callable[[Dispatch], None] | None) -> None:
        self._dispatches.on_dispatch = told

    def spoil(
        self,
        path_regex: str,
        kind: Kind,
        *,
        times: int | None = 1,
        share: float = 1.0,
        seconds: float = 0.0,
        status: int | None = None,
        message: str = "",
    ) -> None:
        """Let requests whose path matches (re.search) go wrong: the next `times`, or with None a `share` of them.

        `seconds`: how long SLOW and LATE take, LIMIT and EXHAUST last. `status`, `message`: instead of GitHub's own.
        """
        own_status, own_message = _REFUSALS.get(kind, (200, ""))
        self._faults.add(
            Fault(
                kind=kind,
                path=re.compile(path_regex),
                times=times,
                share=share,
                status=own_status if status is None else status,
                message=message or own_message,
                seconds=seconds,
            )
        )

    def fail(self, path_regex: str, status: int = 502, times: int = 1, message: str = "Server Error") -> None:
        """Answer the next `times` requests whose path matches (re.search) with `status`; 0 hangs up unanswered."""
        self.spoil(path_regex, Kind.FAIL, times=times, status=status, message=message)

    def heal(self) -> None:
        """Forget everything that was still to go wrong."""
        self._faults.clear()

    # --- answering --------------------------------------------------------------------------------------------

    def _answer(self, request: Request) -> Answer:
        faults = self._faults.draw(request.path)
        if delay := self.delay_seconds + sum(fault.seconds for fault in faults if fault.kind is Kind.SLOW):
            self._stopping.wait(delay)
        fault = next((fault for fault in faults if fault.kind is not Kind.SLOW), None)
        try:
            if fault is not None and fault.kind in _REFUSALS:
                raise Refusal(fault.status, fault.message)
            answer = self._answers.route(request)
        except Refusal as refusal:
            body = {"message": refusal.message, "documentation_url": DOCS, "status": str(refusal.status)}
            answer = Answer(refusal.status, body, headers=fault.headers if fault else {})
        if fault is not None and fault.kind is Kind.LATE:
            # What it leads to does not wait for the answer.
            if answer.after is not None:
                answer.after()
            self._stopping.wait(fault.seconds)
            answer = replace(answer, after=None)
        if fault is not None and fault.kind is Kind.LOSE:
            answer = replace(answer, status=NO_ANSWER)
        if fault is not None and fault.kind is Kind.DUPLICATE and (announce := answer.after):
            answer = replace(answer, after=partial(_twice, announce))
        with self._lock:
            self._requests.append(LoggedRequest(request.method, request.path, answer.status, _readable(request.body)))
        return answer


def _twice(act: Callable[[], None]) -> None:
    act()
    act()


def _readable(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return body.decode(errors="replace")
