"""The demo's whole outside world, run together: what `manage.py simulate` does."""

import datetime
import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from apps.simulator import minder
from apps.simulator.characters import CHARACTERS
from apps.simulator.downstream import Downstreams
from apps.simulator.history import History, Refused
from apps.simulator.hooks import Hook
from apps.simulator.loopback import send
from apps.simulator.notebook import Notebook
from apps.simulator.oidc import kept_key
from apps.simulator.standin import Dispatch, GitHubStandIn
from apps.simulator.timetable import Timetable
from apps.simulator.upstream import OWNER_ID, REPOSITORY_ID, Event, Upstream

log = logging.getLogger(__name__)

KEY_FILE = "standin-oidc.pem"
NOTEBOOK_FILE = "simulator.json"

# A visitor should see answers come in at once: the first events follow each other quickly, and their jobs are short.
BURST_EVENTS = 12
BURST_EVERY_SECONDS = 0.6
BURST_PACE = 0.12
READY_EVERY_SECONDS = 0.5
# At a data folder's first show so many webhooks get lost from that event on. The hub finds them in GitHub's log within
# minutes, asks for them again, and shows the gap as an outage of its own.
LOST_AFTER_EVENTS, LOST_EVENTS = 10, 2
# Without a history: after how many events a repository gets another name.
RENAME_AFTER_EVENTS = 8
# A night falls after the first event, and then after every so many.
NIGHT_EVERY_EVENTS = 24
# The history waits until the first answers are in: it keeps every processor busy.
HISTORY_AFTER_SECONDS = 5.0
# How often somebody looks whether the hub has proposed what the history's reports show, and until when.
MIND_EVERY_SECONDS = 10.0
MIND_FOR_SECONDS = 1_800.0
# With `events` given: how long after the last sign of life the show is over.
QUIET_SECONDS = 10.0


class PortTaken(Exception):
    """The stand-in's port is in use."""


@dataclass(frozen=True)
class Stage:
    """Where the show plays: the hub's address and secrets, as settings and demo.json give them."""

    hub_url: str
    port: int
    app_id: str
    app_private_key: str
    webhook_secret: str
    audience: str
    upstream: str
    data_dir: Path


class Show:
    """One run. `run()` returns when `stop` is set, or when `events` events were sent and answered."""

    def __init__(
        self,
        stage: Stage,
        *,
        stop: threading.Event,
        seed: int,
        every: float,
        events: int | None = None,
        history: int = 0,
        history_after: float = HISTORY_AFTER_SECONDS,
        burst_pace: float = BURST_PACE,
        quiet: float = QUIET_SECONDS,
    ) -> None:
        """`every`: seconds between events after the first burst. `events` None: for ever. `history`: days of it, told
        beside the live events at a data folder's first show; one that was interrupted goes on."""
        self._stage = stage
        self._stop = stop
        self._seed = seed
        self._every = every
        self._left = events
        self._history_days = history
        self._history_after = history_after
        self._history: History | None = None
        self._historian: threading.Thread | None = None
        self._quiet = quiet
        self._sent = 0
        self._is_first = True
        self._is_minded = False
        self._last_sign = 0.0
        self._left_over: list[dict[str, Any]] = []  # callbacks an earlier process owed
        self._timetable = Timetable()
        self._notebook = Notebook(stage.data_dir / NOTEBOOK_FILE)
        self._github = GitHubStandIn(
            app_id=stage.app_id,
            app_private_key=stage.app_private_key,
            oidc_private_key=kept_key(stage.data_dir / KEY_FILE),
            port=stage.port,
            on_dispatch=self._on_dispatch,
        )
        self._downstreams = Downstreams(
            hub_url=stage.hub_url,
            github_url=self._github.url,
            audience=stage.audience,
            seed=seed,
            timetable=self._timetable,
            pace=burst_pace,
        )
        self._upstream = Upstream(
            hub_url=stage.hub_url, webhook_secret=stage.webhook_secret, repository=stage.upstream, seed=seed
        )

    def run(self) -> None:
        """Play until it is over. Raises PortTaken before anything happened. Ends within two seconds of `stop`."""
        for character in CHARACTERS:
            self._github.add_repository(
                character.full_name, repository_id=character.repository_id, owner_id=character.owner_id
            )
        self._github.hooks.on_redeliver = self._send_again
        self._github.add_repository(self._stage.upstream, repository_id=REPOSITORY_ID, owner_id=OWNER_ID)
        notes = self._notebook.read()
        self._is_first = not notes
        if notes:
            self._left_over = notes["pending"]
            self._is_minded = bool(notes.get("minded"))
            if notes.get("renamed"):
                self._rename()
            if "history" in notes:
                self._history = self._a_history(**notes["history"])
            self._upstream.restore(notes["upstream"])
        elif self._history_days:
            self._history = self._a_history(
                days=self._history_days, until=datetime.datetime.now(datetime.UTC).isoformat()
            )
            # The present goes on with the pull requests that the history leaves open.
            self._upstream.restore(self._past.state())
        self._github.commits.add(self._upstream.main_sha, branch="main")
        try:
            self._github.start()
        except OSError as error:
            self._timetable.close()
            raise PortTaken(f"Port {self._stage.port} cannot be used: {error.strerror}") from error
        log.info("Stand-in for GitHub on %s, seed %d", self._github.url, self._seed)
        try:
            self._timetable.after(0, self._wait_for_hub)
            self._stop.wait()
        finally:
            self._timetable.close()
            if self._historian is not None:
                self._historian.join(1.0)
            self._github.stop()
            self._write_notes(whole=True)

    def _wait_for_hub(self) -> None:
        try:
            ready = send("GET", f"{self._stage.hub_url}/readyz").status_code == 200
        except requests.RequestException:
            ready = False
        if not ready:
            self._timetable.after(READY_EVERY_SECONDS, self._wait_for_hub)
            return
        log.info("The hub on %s is ready", self._stage.hub_url)
        left_over, self._left_over = self._left_over, []
        self._downstreams.resume(left_over)
        if self._history is not None and self._history.is_over:
            self._mind(time.monotonic() + MIND_FOR_SECONDS)
        elif self._history is not None:
            self._downstreams.untold = frozenset(c.full_name for c in CHARACTERS if c.flaky_tests)
            self._historian = threading.Thread(target=self._tell_history, name="historian", daemon=True)
            self._historian.start()
        self._next_event()

    def _next_event(self) -> None:
        if self._left is not None and self._sent >= self._left:
            self._end_when_quiet()
            return
        event = self._upstream.next_event()
        self._sent += 1
        self._last_sign = time.monotonic()
        self._github.commits.learn(event.name, event.body)
        if self._sent == LOST_AFTER_EVENTS and self._is_first:
            self._github.hooks.drop(LOST_EVENTS)
        self._send(event)
        if event.name == "push" and event.body["ref"] == "refs/heads/main":
            self._downstreams.test_upstream(self._stage.upstream, event.body["after"])
        if self._sent % NIGHT_EVERY_EVENTS == 1:
            self._begin_night()
        if self._sent == RENAME_AFTER_EVENTS and self._history is None:
            self._rename()
        self._write_notes()
        in_burst = self._sent < BURST_EVENTS
        if not in_burst:
            self._downstreams.pace = 1.0
        self._timetable.after(BURST_EVERY_SECONDS if in_burst else self._every, self._next_event)

    def _begin_night(self) -> None:
        """The second one of a show without history is about a commit that upstream has not; else the history has it."""
        is_stray = self._history is None and self._sent == 1 + NIGHT_EVERY_EVENTS
        self._downstreams.begin_night(f"live {self._upstream.count}", self._upstream.main_sha, is_stray=is_stray)

    def _rename(self) -> None:
        """Give the repositories that are to have one their new name, unless they have it."""
        for character in CHARACTERS:
            if character.renamed_to and not self._github.has_repository(character.renamed_to):
                self._github.rename_repository(character.full_name, character.renamed_to)

    def _is_renamed(self) -> bool:
        return all(self._github.has_repository(c.renamed_to) for c in CHARACTERS if c.renamed_to)

    def _send(self, event: Event) -> None:
        """Post a webhook as the stand-in was told to: it may get lost, or go out twice."""
        statuses = self._github.hooks.deliver(
            event.name, event.delivery_id, event.body, lambda: self._upstream.send(event).status_code
        )
        if max(statuses) >= 400:
            log.warning("The hub refused %s: %d", event, max(statuses))

    def _send_again(self, hook: Hook) -> None:
        self._send(Event(hook.event, hook.delivery_id, hook.body))

    def _a_history(self, *, days: int, until: str, **state: Any) -> History:
        stage = self._stage
        past = Upstream(
            hub_url=stage.hub_url, webhook_secret=stage.webhook_secret, repository=stage.upstream, seed=self._seed
        )
        history = History(
            self._github,
            past,
            hub_url=stage.hub_url,
            audience=stage.audience,
            seed=self._seed,
            days=days,
            until=datetime.datetime.fromisoformat(until),
            closing=self._timetable.closing,
            **state,
        )
        self._past = past
        return history

    def _tell_history(self) -> None:
        assert self._history is not None
        self._timetable.closing.wait(self._history_after)
        try:
            self._history.run()
            # Some of it is hours away: a show that ends by itself leaves that to the next one.
            if self._history.is_over and self._left is None:
                self._downstreams.take_over(self._history.hand_over())
                self._mind(time.monotonic() + MIND_FOR_SECONDS)
        except Refused as error:
            log.warning("The hub takes no history: %s", error)
        except Exception:
            log.exception("The history ends early")
        self._downstreams.untold = frozenset()
        if not self._stop.is_set():
            self._write_notes()

    def _mind(self, until: float) -> None:
        """Have what the hub proposed from the history decided on, once, and as soon as it has proposed enough."""
        if self._is_minded or time.monotonic() > until:
            return
        flaky = next(character for character in CHARACTERS if character.mended_days)
        try:
            self._is_minded = minder.Minder(self._stage.hub_url, flaky).tend(now=datetime.datetime.now(datetime.UTC))
        except minder.Refused as error:
            log.warning("Nobody minds the flaky tests: %s", error)
            return
        except requests.RequestException as error:
            log.info("Flaky tests: %s", type(error).__name__)
        if self._is_minded:
            self._write_notes()
        else:
            self._timetable.after(MIND_EVERY_SECONDS, lambda: self._mind(until))

    def _on_dispatch(self, dispatch: Dispatch) -> None:
        self._last_sign = time.monotonic()
        if self._history is not None and self._history.knows(dispatch.client_payload.get("delivery_id")):
            self._history.take(dispatch)
        else:
            self._downstreams.on_dispatch(dispatch)

    def _is_telling(self) -> bool:
        return self._historian is not None and self._historian.is_alive()

    def _end_when_quiet(self) -> None:
        if self._is_telling() or self._downstreams.pending() or time.monotonic() - self._last_sign < self._quiet:
            self._timetable.after(0.2, self._end_when_quiet)
        else:
            self._stop.set()

    def _write_notes(self, *, whole: bool = False) -> None:
        pending = self._downstreams.pending() + self._left_over
        notes = {"upstream": self._upstream.state(), "pending": pending, "renamed": self._is_renamed()}
        if self._history is not None:
            notes["history"] = self._history.state(with_owed=whole)
            notes["minded"] = self._is_minded
        self._notebook.write(notes)
