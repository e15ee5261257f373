"""Fictional downstream repositories: a dispatch arrives, jobs run for a while, callbacks and reports go to the hub.

What happens is planned (apps/simulator/plan.py); only the clock is real.
"""

import datetime
import json
import logging
import random
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import requests

from apps.simulator.baseline import AFTER_SECONDS, baseline_job, baseline_meta, reportlog
from apps.simulator.characters import CHARACTERS, by_repository
from apps.simulator.dispatches import Dispatch
from apps.simulator.junit import junit
from apps.simulator.loopback import (
    FIRST_WAIT_SECONDS,
    RETRIED,
    Interrupted,
    Unreachable,
    one_line,
    retry_after,
    send_with_retries,
)
from apps.simulator.nights import plan_night
from apps.simulator.plan import Job, answers, plan
from apps.simulator.replays import replays_of
from apps.simulator.timetable import Timetable

log = logging.getLogger(__name__)

# How often a callback is sent again that the hub had no room for (429), each time after as long as it said.
MOST_TRIES = 12


@dataclass(frozen=True)
class Callback:
    """A callback that is owed: `due` in epoch seconds. `tries`: how often the hub had no room for it."""

    job: Job
    status: str
    due: float
    tries: int = 0

    @classmethod
    def first(cls, job: Job, begun: float) -> "Callback":
        """The first that a job owes whose run was asked for at `begun` (epoch seconds)."""
        if job.is_nightly:
            return cls(job, "completed", begun + job.wait_seconds + job.run_seconds)
        return cls(job, "in_progress", begun + job.wait_seconds)

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> "Callback":
        """One that was kept as JSON (`asdict`)."""
        return cls(**(row | {"job": Job(**row["job"])}))

    def following(self) -> "Callback | None":
        """The one that its job owes after this; None after the last."""
        if self.status == "completed" or not self.job.reports_end:
            return None
        return Callback(self.job, "completed", self.due + self.job.run_seconds)


class Downstreams:
    """The CI of every character. `on_dispatch` belongs into a GitHubStandIn; the rest happens on the timetable."""

    def __init__(
        self,
        *,
        hub_url: str,
        github_url: str,
        audience: str,
        seed: int,
        timetable: Timetable,
        pace: float = 1.0,
        retry_seconds: float = FIRST_WAIT_SECONDS,
    ) -> None:
        """`pace` multiplies every time of runs that begin from now on; it may be changed while they run.

        `retry_seconds`: the first wait before a post that failed is tried again.
        """
        self.pace = pace
        # Whose test reports wait until their past is told: what is found flaky now was so before.
        self.untold: frozenset[str] = frozenset()
        self._callback_url = f"{hub_url}/github/callback"
        self._reports_url = f"{hub_url}/api/v1/reports/"
        self._github_url = github_url
        self._audience = audience
        self._seed = seed
        self._timetable = timetable
        self._retry_seconds = retry_seconds
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callback] = {}
        self._count = 0

    def on_dispatch(self, dispatch: Dispatch) -> None:
        """Start the jobs that this dispatch asks for. Returns at once."""
        character = by_repository(dispatch.repository)
        if character is None or not answers(character, dispatch.event_type, dispatch.client_payload):
            log.debug("%s does nothing on %s", dispatch.repository, dispatch.event_type)
            return
        now = time.time()
        for job in plan(character, dispatch.client_payload, seed=self._seed, pace=self.pace):
            self._owe(Callback.first(job, now))

    def begin_night(self, night: str, commit: str, *, is_stray: bool = False) -> None:
        """Start the nightly runs of those that have some, about upstream's newest `commit`. Returns at once."""
        now = time.time()
        for character in CHARACTERS:
            if not character.is_nightly_only:
                continue
            for job in plan_night(
                character, night=night, commit=commit, seed=self._seed, is_stray=is_stray, pace=self.pace
            ):
                self._owe(Callback.first(job, now))

    def pending(self) -> list[dict[str, Any]]:
        """Every callback still owed, as JSON-able data for `resume()`."""
        with self._lock:
            return [asdict(callback) for callback in self._callbacks.values()]

    def resume(self, pending: list[dict[str, Any]]) -> None:
        """Take up what an earlier process left: its machines went on while nobody reported."""
        self.take_over(Callback.from_row(row) for row in pending)

    def take_over(self, callbacks: Iterable[Callback]) -> None:
        """Report what others have begun."""
        for callback in callbacks:
            self._owe(callback)

    def _owe(self, callback: Callback) -> None:
        with self._lock:
            self._count += 1
            number = self._count
            self._callbacks[number] = callback
        self._timetable.after(callback.due - time.time(), lambda: self._report(number, callback))

    def _report(self, number: int, callback: Callback) -> None:
        job, following = callback.job, callback.following()
        try:
            is_end = callback.status == "completed" and not callback.tries
            if job.uploads and is_end and job.repository not in self.untold:
                self._upload(job)
            pause = self._post(job, callback.status)
            if pause is not None:
                if callback.tries < MOST_TRIES:
                    following = replace(callback, due=time.time() + pause, tries=callback.tries + 1)
                else:
                    log.warning("%s: the hub never had room for %s", job, callback.status)
        except Interrupted:
            return  # still owed: the next process reports it
        except Unreachable as error:
            log.warning("%s: %s was not reported: %s", job, callback.status, error)
        except Exception:
            log.exception("%s: %s was not reported", job, callback.status)
        # A refused start turns a step of the job red; its last step reports all the same.
        if following is not None:
            self._owe(following)
        with self._lock:
            del self._callbacks[number]

    def _post(self, job: Job, status: str) -> float | None:
        """Send one callback. Returns how long (seconds) to wait before it is sent again; None: not again."""
        token = self._token(job, status)
        if token is None:
            return None
        body = job.body(status, datetime.datetime.now(datetime.UTC))
        response = self._post_body(body, token)
        if response.status_code == 429:
            return max(self._retry_seconds, retry_after(response)) * random.uniform(1, 1.1)
        if response.status_code >= 400:
            log.warning("%s: the hub refused %s: %s", job, status, one_line(response))
        elif job.is_replayed and status == "completed":
            self._replay(job, body, token)
        return None

    def test_upstream(self, repository: str, sha: str) -> None:
        """Let upstream's own job test a commit of main, and report for its platform. Returns at once; what does not
        come through is lost."""
        job = baseline_job(repository, sha, seed=self._seed)
        self._timetable.after(AFTER_SECONDS * self.pace, lambda: self._report_upstream(job))

    def _report_upstream(self, job: Job) -> None:
        try:
            self._send_report(job, baseline_meta(job), f"{job.job_name}.jsonl", reportlog(job))
        except Interrupted:
            return
        except Unreachable as error:
            log.warning("%s: its tests were not reported: %s", job, error)

    def _upload(self, job: Job) -> None:
        """Send its test report, a step before the one that reports its end. Sent again, it is a repetition."""
        self._send_report(job, job.meta(), f"{job.job_name}.xml", junit(job))

    def _send_report(self, job: Job, meta: dict[str, Any], name: str, content: bytes) -> None:
        token = self._token(job, "in_progress")
        if token is None:
            return
        response = self._send(
            "POST",
            self._reports_url,
            headers={"Authorization": f"Bearer {token}"},
            data={"meta": json.dumps(meta)},
            files={"file": (name, content, "application/octet-stream")},
        )
        if response.status_code >= 400:
            log.warning("%s: the hub refused its test report: %s", job, one_line(response))

    def _post_body(self, body: dict[str, Any], token: str) -> requests.Response:
        return self._send(
            "POST",
            self._callback_url,
            data=json.dumps(body),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            # A flood that waits here would hold up everyone else's callbacks.
            retried=RETRIED - {429},
        )

    def _replay(self, job: Job, body: dict[str, Any], token: str) -> None:
        for replay in replays_of(body):
            own = self._token(job, "completed") if replay.has_own_token else token
            if own is not None:
                log.debug("%s replays: %s", job, one_line(self._post_body(replay.body, own)))

    def _token(self, job: Job, status: str) -> str | None:
        """An OIDC token, fetched as a job on GitHub fetches it; None (and a line in the log) where there is none."""
        run = self._send(
            "POST",
            f"{self._github_url}/_standin/runs",
            json={
                "repository": job.repository,
                "run_id": job.run_id,
                "run_attempt": job.run_attempt,
                "workflow": job.workflow,
                "ci": job.ci,
                "job": job.record(status) if job.is_on_github else None,
            },
        )
        if run.status_code == 201:
            answer = run.json()
            token = self._send(
                "GET",
                f"{answer['token_url']}&audience={self._audience}",
                headers={"Authorization": f"bearer {answer['request_token']}"},
            )
            if token.status_code == 200:
                return str(token.json()["value"])
            run = token
        log.warning("%s: no OIDC token: %s", job, one_line(run))
        return None

    def _send(self, method: str, url: str, **options: Any) -> requests.Response:
        return send_with_retries(
            method, url, closing=self._timetable.closing, first_wait=self._retry_seconds, **options
        )
