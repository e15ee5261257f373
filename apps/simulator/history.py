"""Weeks of history for a demo's hub, through its front door: signed webhooks and callbacks with tokens, each under the
time that it pretends (X-AccelHub-Clock).

It goes day by day. A day's webhooks are posted; the hub dispatches them, and the stand-in hands the dispatches on to
`take()`, which plans the jobs; then what these jobs report up to midnight is posted, several at a time, the callbacks
of one job in their order. The next day's webhooks are on their way meanwhile. What is not due yet at the end is left to
whoever goes on in the present. Nightly runs begin by themselves, and a repository that gets another name in its course
has it from the first day on whose callbacks the hub hears of it.
"""

import datetime
import json
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import requests

from apps.simulator.characters import CHARACTERS, Character
from apps.simulator.days import Day, days_of
from apps.simulator.dispatches import Dispatch
from apps.simulator.downstream import Callback
from apps.simulator.junit import junit
from apps.simulator.loopback import CLOCK_HEADER, Interrupted, Unreachable, one_line, send_with_retries, session
from apps.simulator.nights import plan_night
from apps.simulator.plan import Job, answers, plan
from apps.simulator.replays import replays_of
from apps.simulator.standin import GitHubStandIn
from apps.simulator.upstream import OWNER_ID, REPOSITORY_ID, Event, Upstream

log = logging.getLogger(__name__)

# In the live demo a second of CI stands for a minute; here it is one.
PACE = 60.0
# When a day's nightly runs begin.
NIGHT = datetime.timedelta(hours=2)
# How long (seconds) to wait for a day's first dispatch, and for another after the last that came.
FIRST_DISPATCH_SECONDS = 30.0
QUIET_SECONDS = 10.0
LOG_EVERY_DAYS = 5
DAY_SECONDS = 86_400


class Refused(Exception):
    """The hub does not take events of the past."""


@dataclass(frozen=True)
class Filled:
    """What a history came to. `replays`: how often an end was sent again or misused. `reports`: of tests. `left`:
    callbacks that are due after its end."""

    events: int
    dispatches: int
    callbacks: int
    replays: int
    reports: int
    seconds: float
    left: tuple[Callback, ...]


class History:
    """One history, which may be interrupted and taken up again (`state()`). `take` belongs to a stand-in's
    `on_dispatch`, for the deliveries that it `knows`; `run()` returns when all is told or `closing` is set."""

    def __init__(
        self,
        github: GitHubStandIn,
        upstream: Upstream,
        *,
        hub_url: str,
        audience: str,
        seed: int,
        days: int,
        until: datetime.datetime,
        characters: Sequence[Character] = CHARACTERS,
        clients: int = 4,
        closing: threading.Event | None = None,
        next_day: int = 0,
        owed: Iterable[dict[str, Any]] = (),
    ) -> None:
        """`upstream` is fresh, and makes the events here. `clients`: how many callbacks are posted at a time.

        `next_day` and `owed` are those of a `state()`, whose `until` and `days` are given again with them.
        """
        self._github = github
        self._upstream = upstream
        self._callback_url = f"{hub_url}/github/callback"
        self._reports_url = f"{hub_url}/api/v1/reports/"
        self._audience = audience
        self._seed = seed
        self._span = days
        self._until = until
        self._characters = {name.lower(): character for character in characters for name in character.names}
        self._renamed = [character for character in characters if character.renamed_to]
        self._nightly = [character for character in characters if character.is_nightly_only]
        self._clients = clients
        self._closing = closing or threading.Event()
        self._days = days_of(upstream, seed=seed, days=days, until=until)
        self._times = {event.delivery_id: at for day in self._days for at, event in day.events}
        self._next_day = next_day
        self._owed = [Callback.from_row(row) for row in owed]
        self._changed = threading.Condition()
        self._events = self._dispatches = self._callbacks = self._replays = self._reports = 0
        self._expected = 0
        self._all = self._per_event = len(characters) - len(self._nightly)
        self.is_over = next_day >= len(self._days) and not self._owed

    def knows(self, delivery_id: object) -> bool:
        """Whether this delivery is part of the history, and the history still runs."""
        return not self.is_over and delivery_id in self._times

    def take(self, dispatch: Dispatch) -> None:
        """Plan the jobs that a dispatch leads to. Returns at once."""
        at = self._times[dispatch.client_payload["delivery_id"]]
        character = self._characters.get(dispatch.repository.lower())
        jobs = []
        if character is not None and answers(character, dispatch.event_type, dispatch.client_payload):
            days_ago = self._days_ago(at)
            jobs = plan(character, dispatch.client_payload, seed=self._seed, pace=PACE, days_ago=days_ago)
        with self._changed:
            self._owed += [Callback.first(job, at.timestamp()) for job in jobs]
            self._dispatches += 1
            self._changed.notify_all()

    def state(self, *, with_owed: bool = True) -> dict[str, Any]:
        """Where it stands, as JSON-able data. Without what is owed it costs nothing, and loses a day's open jobs."""
        with self._changed:
            return {
                "days": self._span,
                "until": self._until.isoformat(),
                "next_day": self._next_day,
                "owed": [asdict(callback) for callback in self._owed] if with_owed else [],
            }

    def run(self) -> Filled:
        """Tell the hub all of it. Raises Refused where it does not listen."""
        begin = time.monotonic()
        try:
            self._tell(begin)
        except Interrupted:
            return self._filled(begin, left=())
        self.is_over = True
        filled = self._filled(begin, left=tuple(self._owed))
        if self._callbacks:
            log.info(
                "History: complete, %d events and %d callbacks in %.0f s",
                *(self._events, self._callbacks, filled.seconds),
            )
        return filled

    def hand_over(self) -> list[Callback]:
        """What is due after its end, to be reported by someone else."""
        with self._changed:
            left, self._owed = self._owed, []
        return left

    def _filled(self, begin: float, left: tuple[Callback, ...]) -> Filled:
        seconds = time.monotonic() - begin
        counts = (self._events, self._dispatches, self._callbacks, self._replays, self._reports)
        return Filled(*counts, seconds, left)

    def _days_ago(self, at: datetime.datetime) -> float:
        return (self._until - at).total_seconds() / DAY_SECONDS

    def _tell(self, begin: float) -> None:
        if self._next_day:  # taken up again
            self._report_until(self._days[self._next_day - 1].end)
        if self._next_day < len(self._days):
            self._post_events(self._days[self._next_day])
        while self._next_day < len(self._days):
            day = self._days[self._next_day]
            self._await_dispatches()
            nights = self._nights(day)
            with self._changed:
                self._owed += nights
                self._next_day += 1
            if self._rename_at(day):
                # The hub hears of it before it sends anything to the name that leads nowhere.
                self._report_until(day.end)
            if self._next_day < len(self._days):
                self._post_events(self._days[self._next_day])
            self._report_until(day.end)
            if self._next_day % LOG_EVERY_DAYS == 0 and self._next_day < self._span:
                seconds = time.monotonic() - begin
                log.info("History: %d of %d days, %.0f s", self._next_day, self._span, seconds)

    # --- what happens by itself ---------------------------------------------------------------------------------

    def _nights(self, day: Day) -> list[Callback]:
        """What the day's nightly runs will report."""
        at, days_ago = day.begin + NIGHT, self._days_ago(day.begin + NIGHT)
        if at.timestamp() >= day.end:
            return []
        self._github.commits.add(day.head)
        return [
            Callback.first(job, at.timestamp())
            for character in self._nightly
            for job in plan_night(
                character,
                night=day.begin.date().isoformat(),
                commit=day.head,
                seed=self._seed,
                is_stray=(self._until.date() - day.begin.date()).days == character.stray_days,
                pace=PACE,
                days_ago=days_ago,
            )
        ]

    def _rename_at(self, day: Day) -> bool:
        """Give repositories whose time has come their new names, on a day on which they report under them. Returns
        whether any got one."""
        speaking = {callback.job.repository for callback in self._owed if callback.due < day.end}
        due = [
            character
            for character in self._renamed
            if self._days_ago(day.begin) <= character.renamed_days
            and character.full_name in speaking
            and not self._github.has_repository(character.renamed_to)
        ]
        for character in due:
            self._github.rename_repository(character.full_name, character.renamed_to)
        return bool(due)

    # --- events and their dispatches ------------------------------------------------------------------------------

    def _post_events(self, day: Day) -> None:
        for at, event in day.events:
            if self._closing.is_set():
                raise Interrupted
            self._github.commits.learn(event.name, event.body)
            taken: list[requests.Response] = []
            self._github.hooks.deliver(
                event.name, event.delivery_id, event.body, partial(self._post_event, event, at, taken), at=at
            )
            if not taken:
                # Sent again, it comes in the present and is answered there.
                del self._times[event.delivery_id]
                continue
            if taken[0].status_code == 400:
                raise Refused(one_line(taken[0]))
            self._events += 1
            # A repeated one was dispatched when it came first.
            if taken[0].status_code == 202:
                self._expected += self._per_event

    def _post_event(self, event: Event, at: datetime.datetime, taken: list[requests.Response]) -> int:
        taken.append(self._upstream.send(event, at))
        return taken[-1].status_code

    def _await_dispatches(self) -> None:
        """Wait until the stand-in has got what the webhooks posted so far lead to; where less comes than expected,
        until nothing comes any more: a platform may have been unlisted."""
        with self._changed:
            if self._dispatches > self._expected:  # the hub was merely slow
                self._expected, self._per_event = self._dispatches, self._all
            wait = FIRST_DISPATCH_SECONDS
            while self._dispatches < self._expected:
                if self._closing.is_set():
                    raise Interrupted
                before, deadline = self._dispatches, time.monotonic() + wait
                while self._dispatches == before and time.monotonic() < deadline and not self._closing.is_set():
                    self._changed.wait(0.5)
                if self._dispatches == before and not self._closing.is_set():
                    log.info("History: %d dispatches of %d came", self._dispatches, self._expected)
                    self._per_event = max(1, round(self._per_event * self._dispatches / self._expected))
                    self._expected = self._dispatches
                wait = QUIET_SECONDS

    # --- callbacks ------------------------------------------------------------------------------------------------

    def _report_until(self, end: float) -> None:
        """Post everything that is due before `end`."""
        with self._changed:
            due = sorted((callback for callback in self._owed if callback.due < end), key=lambda c: c.due)
            self._owed = [callback for callback in self._owed if callback.due >= end]
        # Connections of their own for each day: they spread over the hub's processes anew.
        lines = threading.local()
        opened: list[requests.Session] = []

        def connect() -> None:
            lines.session = session()
            opened.append(lines.session)

        with ThreadPoolExecutor(self._clients, "history", initializer=connect) as pool:
            list(pool.map(lambda callback: self._report_job(callback, end, lines), due))
        for each in opened:
            each.close()
        if self._closing.is_set():
            raise Interrupted

    def _report_job(self, callback: Callback, end: float, lines: Any) -> None:
        """Post a callback, and what its job owes after it before `end`."""
        following: Callback | None = callback
        while following is not None and following.due < end and not self._closing.is_set():
            try:
                self._post(following, lines.session)
            except Interrupted:
                break
            except Unreachable as error:
                log.warning("%s: %s was not reported: %s", following.job, following.status, error)
            following = following.following()
        if following is not None:
            with self._changed:
                self._owed.append(following)

    def _post(self, callback: Callback, over: requests.Session) -> None:
        job, at = callback.job, datetime.datetime.fromtimestamp(callback.due, datetime.UTC)
        if job.is_on_github:
            self._github.record_job(
                job.repository, run_id=job.run_id, run_attempt=job.run_attempt, **job.record(callback.status)
            )
        if callback.status == "completed" and self._tells_tests(job):
            self._upload(job, at, over)
        body, token = job.body(callback.status, at), self._token(job)
        response = self._post_body(body, token, at, over)
        if response.status_code >= 400:
            log.warning("%s: the hub refused %s: %s", job, callback.status, one_line(response))
        replays = replays_of(body) if job.is_replayed and callback.status == "completed" else ()
        for replay in replays:
            own = self._token(job) if replay.has_own_token else token
            log.debug("%s replays: %s", job, one_line(self._post_body(replay.body, own, at, over)))
        with self._changed:
            self._callbacks += 1
            self._replays += len(replays)

    def _tells_tests(self, job: Job) -> bool:
        """Whether a job of the past sends its test report: those on main of whoever has flaky tests. All would take
        the hub long to read."""
        character = self._characters[job.repository.lower()]
        return job.uploads and job.is_on_main and character.flaky_tests > 0

    def _upload(self, job: Job, at: datetime.datetime, over: requests.Session) -> None:
        response = send_with_retries(
            "POST",
            self._reports_url,
            closing=self._closing,
            over=over,
            headers={"Authorization": f"Bearer {self._token(job)}", CLOCK_HEADER: at.isoformat()},
            data={"meta": json.dumps(job.meta())},
            files={"file": (f"{job.job_name}.xml", junit(job), "application/xml")},
        )
        if response.status_code >= 400:
            log.warning("%s: the hub refused its test report: %s", job, one_line(response))
        with self._changed:
            self._reports += 1

    def _post_body(
        self, body: dict[str, Any], token: str, at: datetime.datetime, over: requests.Session
    ) -> requests.Response:
        return send_with_retries(
            "POST",
            self._callback_url,
            closing=self._closing,
            over=over,
            data=json.dumps(body),
            headers={
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/json",
                CLOCK_HEADER: at.isoformat(),
            },
        )

    def _token(self, job: Job) -> str:
        audience = self._audience
        if job.ci == "buildkite":
            return self._github.mint_buildkite_token(
                job.repository, audience=audience, build_number=int(job.run_id), step=job.job_name
            )
        return self._github.mint_token(
            job.repository,
            audience=audience,
            run_id=job.run_id,
            run_attempt=job.run_attempt,
            workflow=job.workflow,
        )


def fill(
    github: GitHubStandIn,
    *,
    hub_url: str,
    webhook_secret: str,
    audience: str,
    upstream: str,
    days: int,
    until: datetime.datetime | None = None,
    characters: Sequence[Character] = CHARACTERS,
    seed: int = 1,
    clients: int = 4,
) -> Filled:
    """Fill a demo's hub that runs, has listed these characters and sends its dispatches to this stand-in. Blocks.

    For tests and benchmarks: while it lasts, it alone is told of dispatches. Raises Refused where the hub is no demo.
    """
    for character in characters:
        github.add_repository(character.full_name, repository_id=character.repository_id, owner_id=character.owner_id)
    github.add_repository(upstream, repository_id=REPOSITORY_ID, owner_id=OWNER_ID)
    history = History(
        github,
        Upstream(hub_url=hub_url, webhook_secret=webhook_secret, repository=upstream, seed=seed),
        hub_url=hub_url,
        audience=audience,
        seed=seed,
        days=days,
        until=until or datetime.datetime.now(datetime.UTC),
        characters=characters,
        clients=clients,
    )

    def told(dispatch: Dispatch) -> None:
        if history.knows(dispatch.client_payload.get("delivery_id")):
            history.take(dispatch)

    before, github.on_dispatch = github.on_dispatch, told
    try:
        return history.run()
    finally:
        github.on_dispatch = before
