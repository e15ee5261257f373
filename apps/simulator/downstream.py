"""Fictional downstream repositories: a dispatch arrives, jobs run for a while, callbacks go to the hub.

The seed and the delivery id decide how every job ends; only the clock is real. A dispatch of the same delivery
therefore starts the same run again, which the hub must take as a repetition.
"""

import datetime
import json
import logging
import random
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any

import requests

from apps.simulator.chance import chance
from apps.simulator.characters import Character, JobShape, by_repository
from apps.simulator.dispatches import Dispatch
from apps.simulator.loopback import FIRST_WAIT_SECONDS, Interrupted, Unreachable, one_line, send_with_retries
from apps.simulator.reporter import callback_body, wants
from apps.simulator.timetable import Timetable

log = logging.getLogger(__name__)

# How the jobs that do not succeed end, and how often.
OTHER_ENDS = {"failure": 85, "timed_out": 10, "cancelled": 5}


@dataclass(frozen=True)
class Job:
    """One job of one run attempt, its end already decided. Times in seconds; `wait_seconds` from the dispatch on."""

    repository: str
    workflow: str
    client_payload: dict[str, Any]
    run_id: str
    run_attempt: int
    job_name: str
    check_run_id: str
    wait_seconds: float
    run_seconds: float
    conclusion: str
    test_results: dict[str, int] | None
    artifact_url: str | None

    def body(self, status: str, at: datetime.datetime) -> dict[str, Any]:
        """The callback for `status`, reported at `at`."""
        done = status == "completed"
        return callback_body(
            self.client_payload,
            status=status,
            conclusion=self.conclusion,
            name=self.workflow,
            url=f"https://github.com/{self.repository}/actions/runs/{self.run_id}",
            run_id=self.run_id,
            run_attempt=str(self.run_attempt),
            job_name=self.job_name,
            check_run_id=self.check_run_id,
            at=at,
            test_results=self.test_results if done else None,
            artifact_url=self.artifact_url if done else None,
        )

    def __str__(self) -> str:
        return f"{self.repository} {self.job_name} (run {self.run_id}, attempt {self.run_attempt})"


def plan(character: Character, client_payload: dict[str, Any], *, seed: int, pace: float = 1.0) -> list[Job]:
    """Every job that a dispatch leads to, re-runs of failed ones included. `pace` multiplies all times."""
    rng = chance(seed, character.full_name, client_payload.get("delivery_id"))
    run_id = str(rng.randrange(20_000_000_000, 90_000_000_000))
    queued = rng.uniform(*character.queue_seconds)
    jobs = []
    for shape in character.jobs:
        first = _attempt(rng, character, shape, client_payload, run_id, 1, queued, character.pass_rate, pace)
        jobs.append(first)
        if first.conclusion != "success" and rng.random() < character.rerun_rate:
            # Someone looks at it, and presses the button; what was merely unlucky passes now.
            later = queued + first.run_seconds / pace + rng.uniform(5, 15)
            jobs.append(_attempt(rng, character, shape, client_payload, run_id, 2, later, 0.75, pace))
    return jobs


def _attempt(
    rng: random.Random,
    character: Character,
    shape: JobShape,
    client_payload: dict[str, Any],
    run_id: str,
    attempt: int,
    wait: float,
    pass_rate: float,
    pace: float,
) -> Job:
    conclusion = "success"
    if rng.random() >= pass_rate:
        conclusion = rng.choices(list(OTHER_ENDS), weights=list(OTHER_ENDS.values()))[0]
    results = _test_results(rng, shape.tests, character.skip_share, conclusion)
    artifact = f"https://artifacts.{character.owner}.example/{run_id}/{attempt}/{shape.name}/"
    return Job(
        repository=character.full_name,
        workflow=character.workflow,
        client_payload=client_payload,
        run_id=run_id,
        run_attempt=attempt,
        job_name=shape.name,
        check_run_id=str(rng.randrange(50_000_000_000, 99_000_000_000)),
        wait_seconds=wait * pace,
        run_seconds=rng.uniform(*shape.seconds) * pace,
        conclusion=conclusion,
        test_results=results,
        artifact_url=artifact if results is not None else None,
    )


def _test_results(rng: random.Random, tests: int, skip_share: float, conclusion: str) -> dict[str, int] | None:
    """Counts that agree with the conclusion; None for a job without tests, or one that was stopped before its end."""
    if not tests or conclusion not in {"success", "failure"}:
        return None
    skipped = round(tests * skip_share * rng.uniform(0.97, 1.03))
    failed = rng.randint(1, 9) if conclusion == "failure" else 0
    return {"passed": tests - skipped - failed, "failed": failed, "skipped": skipped, "total": tests}


@dataclass(frozen=True)
class Callback:
    """A callback that is owed: `due` in epoch seconds."""

    job: Job
    status: str
    due: float


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
        self._callback_url = f"{hub_url}/github/callback"
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
        if character is None or not wants(dispatch.event_type, dispatch.client_payload):
            log.debug("%s does nothing on %s", dispatch.repository, dispatch.event_type)
            return
        now = time.time()
        for job in plan(character, dispatch.client_payload, seed=self._seed, pace=self.pace):
            self._owe(Callback(job, "in_progress", now + job.wait_seconds))

    def pending(self) -> list[dict[str, Any]]:
        """Every callback still owed, as JSON-able data for `resume()`."""
        with self._lock:
            return [asdict(callback) for callback in self._callbacks.values()]

    def resume(self, pending: list[dict[str, Any]]) -> None:
        """Take up what an earlier process left: its machines went on while nobody reported."""
        for row in pending:
            self._owe(Callback(Job(**row["job"]), row["status"], row["due"]))

    def _owe(self, callback: Callback) -> None:
        with self._lock:
            self._count += 1
            number = self._count
            self._callbacks[number] = callback
        self._timetable.after(callback.due - time.time(), lambda: self._report(number, callback))

    def _report(self, number: int, callback: Callback) -> None:
        job = callback.job
        try:
            self._post(job, callback.status)
        except Interrupted:
            return  # still owed: the next process reports it
        except Unreachable as error:
            log.warning("%s: %s was not reported: %s", job, callback.status, error)
        except Exception:
            log.exception("%s: %s was not reported", job, callback.status)
        # A refused start turns a step of the job red; its last step reports all the same.
        if callback.status == "in_progress":
            self._owe(Callback(job, "completed", callback.due + job.run_seconds))
        with self._lock:
            del self._callbacks[number]

    def _post(self, job: Job, status: str) -> None:
        token = self._token(job)
        if token is None:
            return
        body = json.dumps(job.body(status, datetime.datetime.now(datetime.UTC)))
        response = self._send(
            "POST",
            self._callback_url,
            data=body,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        if response.status_code >= 400:
            log.warning("%s: the hub refused %s: %s", job, status, one_line(response))

    def _token(self, job: Job) -> str | None:
        """An OIDC token, fetched as a job on GitHub fetches it; None (and a line in the log) where there is none."""
        run = self._send(
            "POST",
            f"{self._github_url}/_standin/runs",
            json={
                "repository": job.repository,
                "run_id": job.run_id,
                "run_attempt": job.run_attempt,
                "workflow": job.workflow,
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
