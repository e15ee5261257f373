"""Things to do later, done by a few daemon threads: the clockwork of the simulator."""

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from typing import Self

log = logging.getLogger(__name__)


class Timetable:
    """Runs each task once its time has come. A task that raises is logged; the others go on.

    Two hundred jobs that each take a minute cost no more threads than one: a job is its next step's time.
    """

    def __init__(self, workers: int = 8) -> None:
        self.closing = threading.Event()  # a task that waits, waits on this
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._work, name=f"timetable-{n}", daemon=True) for n in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def after(self, seconds: float, task: Callable[[], object]) -> None:
        """Run `task` in `seconds` from now. After `close()` nothing runs any more."""
        with self._changed:
            heapq.heappush(self._due, (time.monotonic() + max(0.0, seconds), next(self._order), task))
            self._changed.notify()

    def close(self, seconds: float = 1.0) -> None:
        """Forget what has not begun; wait up to `seconds` in all for what has. The rest dies with the process."""
        self.closing.set()
        with self._changed:
            self._due.clear()
            self._changed.notify_all()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _work(self) -> None:
        while (task := self._next()) is not None:
            try:
                task()
            except Exception:
                log.exception("A simulated step failed")

    def _next(self) -> Callable[[], object] | None:
        with self._changed:
            while not self.closing.is_set():
                wait = self._due[0][0] - time.monotonic() if self._due else None
                if wait is not None and wait <= 0:
                    task = heapq.heappop(self._due)[2]
                    if self._due:
                        self._changed.notify()  # while this thread is busy, another watches what comes next
                    return task
                self._changed.wait(wait)
        return None
