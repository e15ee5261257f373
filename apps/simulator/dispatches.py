"""The dispatches a stand-in accepted: remembered, and handed on in order by one background thread."""

import datetime
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Dispatch:
    """A repository_dispatch the stand-in accepted. `number` counts from 1; `received_at` is ISO, UTC."""

    number: int
    repository: str
    event_type: str
    client_payload: dict[str, Any]
    received_at: str


class Dispatches:
    """The last `keep` dispatches, oldest first, and who is told of each."""

    def __init__(self, keep: int, on_dispatch: Callable[[Dispatch], None] | None) -> None:
        self.on_dispatch = on_dispatch
        self._lock = threading.Lock()
        self._accepted: deque[Dispatch] = deque(maxlen=keep)
        self._count = 0
        self._background: ThreadPoolExecutor | None = None

    def start(self) -> None:
        self._background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="standin-dispatch")

    def stop(self) -> None:
        """Tell nobody any more; wait for the call that is under way."""
        if self._background is not None:
            self._background.shutdown(wait=True, cancel_futures=True)
            self._background = None

    def all(self) -> list[Dispatch]:
        with self._lock:
            return list(self._accepted)

    def accept(self, repository: str, event_type: str, client_payload: dict[str, Any]) -> Dispatch:
        """Remember a dispatch. `announce()` it once its answer was sent."""
        now = datetime.datetime.now(datetime.UTC).isoformat()
        with self._lock:
            self._count += 1
            dispatch = Dispatch(self._count, repository, event_type, client_payload, now)
            self._accepted.append(dispatch)
        return dispatch

    def announce(self, dispatch: Dispatch) -> None:
        """Call `on_dispatch` in the background, after those announced before."""
        if self._background is None:
            return
        try:
            self._background.submit(self._tell, dispatch)
        except RuntimeError:
            log.debug("Stopped before %s was announced", dispatch.repository)

    def _tell(self, dispatch: Dispatch) -> None:
        if self.on_dispatch is None:
            return
        try:
            self.on_dispatch(dispatch)
        except Exception:
            log.exception("on_dispatch failed for %s", dispatch.repository)
