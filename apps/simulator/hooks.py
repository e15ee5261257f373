"""The log of webhooks that a stand-in's App sent, and sending one again when asked."""

import datetime
import itertools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import requests

from apps.simulator.wire import Answer, Refusal, Request

log = logging.getLogger(__name__)
PER_PAGE = 30
KEPT = 5_000


@dataclass(frozen=True)
class Hook:
    """One attempt to deliver a webhook. `status` is what the receiver answered, 0 for nothing."""

    number: int
    event: str
    delivery_id: str
    body: dict[str, Any]
    status: int
    at: datetime.datetime
    redelivery: bool


class Hooks:
    """Attempts, newest last. What was asked for again stands in `asked` before the answer says so; `on_redeliver` is
    called after it. Safe for threads."""

    def __init__(self) -> None:
        self.asked: list[Hook] = []
        self.on_redeliver: Callable[[Hook], None] | None = None
        self._lock = threading.Lock()
        self._numbers = itertools.count(7_000_000_001)
        self._sent: dict[int, Hook] = {}
        self._to_drop = self._to_duplicate = 0

    def drop(self, times: int) -> None:
        """Let the next webhooks get lost on their way."""
        with self._lock:
            self._to_drop = times

    def duplicate(self, times: int) -> None:
        """Let the next webhooks that do not get lost be sent twice, as GitHub now and then does."""
        with self._lock:
            self._to_duplicate = times

    def deliver(
        self,
        event: str,
        delivery_id: str,
        body: dict[str, Any],
        post: Callable[[], int],
        *,
        at: datetime.datetime | None = None,
    ) -> list[int]:
        """Send a webhook by `post`, which returns what the receiver answered, unless it gets lost; log each attempt,
        under `at` where that is not now. Returns the statuses of the attempts.

        A post that raises requests.RequestException is an attempt that nobody answered.
        """
        is_dropped = self.is_dropped()
        statuses = []
        for _ in range(2 if not is_dropped and self._is_duplicated() else 1):
            status = 0 if is_dropped else _status_of(post)
            self.record(event, delivery_id, body, status, at=at)
            statuses.append(status)
        return statuses

    def _is_duplicated(self) -> bool:
        with self._lock:
            if not self._to_duplicate:
                return False
            self._to_duplicate -= 1
            return True

    def is_dropped(self) -> bool:
        """Whether the webhook that is about to be sent gets lost."""
        with self._lock:
            if not self._to_drop:
                return False
            self._to_drop -= 1
            return True

    def record(
        self, event: str, delivery_id: str, body: dict[str, Any], status: int, *, at: datetime.datetime | None = None
    ) -> int:
        """Log one attempt. Returns its number."""
        with self._lock:
            number = next(self._numbers)
            again = any(hook.delivery_id == delivery_id for hook in self._sent.values())
            moment = at or datetime.datetime.now(datetime.UTC)
            self._sent[number] = Hook(number, event, delivery_id, body, status, moment, again)
            for old in list(self._sent)[:-KEPT]:
                del self._sent[old]
            return number

    def listing(self, request: Request, url: str) -> Answer:
        """`GET /app/hook/deliveries`: newest first, by pages that a cursor in the Link header leads to. Raises Refusal
        422 for a cursor that is none."""
        size = min(int(request.query.get("per_page", PER_PAGE)), 100)
        cursor = request.query.get("cursor", "0")
        if not cursor.isdigit():
            raise Refusal(422, "Invalid cursor")
        before = int(cursor)
        with self._lock:
            # By time: a demo's history is logged under its own times, beside the present.
            newest = sorted(self._sent.values(), key=lambda hook: (hook.at, hook.number), reverse=True)
        rows = newest[next((place + 1 for place, hook in enumerate(newest) if hook.number == before), 0) :]
        page, link = rows[:size], {}
        if len(rows) > size:
            link = {"Link": f'<{url}/app/hook/deliveries?per_page={size}&cursor={page[-1].number}>; rel="next"'}
        return Answer(200, [_shown(hook) for hook in page], headers=link)

    def redeliver(self, number: int) -> Answer:
        """`POST /app/hook/deliveries/{id}/attempts`. Raises Refusal 404."""
        with self._lock:
            hook = self._sent.get(number)
        if hook is None:
            raise Refusal(404, "Not Found")
        self.asked.append(hook)
        return Answer(202, {}, after=partial(self._send_again, hook))

    def _send_again(self, hook: Hook) -> None:
        if self.on_redeliver is not None:
            self.on_redeliver(hook)


def _status_of(post: Callable[[], int]) -> int:
    try:
        return post()
    except requests.RequestException as error:
        log.warning("A webhook was not taken: %s", type(error).__name__)
        return 0


def _shown(hook: Hook) -> dict[str, Any]:
    return {
        "id": hook.number,
        "guid": hook.delivery_id,
        "delivered_at": hook.at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "redelivery": hook.redelivery,
        "duration": 0.1,
        "status": "OK" if 200 <= hook.status < 300 else "failed to connect to host",
        "status_code": hook.status,
        "event": hook.event,
        "action": hook.body.get("action"),
        "installation_id": hook.body.get("installation", {}).get("id"),
        "repository_id": hook.body["repository"].get("id"),
    }
