"""How a stand-in is told to misbehave: be slow, limit, fail, drop, lose or duplicate; the next so many, or a share."""

import enum
import random
import re
import threading
import time
from dataclasses import dataclass


class Kind(enum.Enum):
    """What goes wrong."""

    SLOW = "answered after `seconds`"
    FAIL = "answered with `status`, nothing done"
    LIMIT = "refused for `seconds` as GitHub's secondary rate limit does, with Retry-After"
    EXHAUST = "refused for `seconds` as GitHub's primary rate limit does, with the time of its reset"
    DROP = "hung up on, nothing done"
    LOSE = "done, and hung up on before the answer"
    LATE = "done at once, and answered after `seconds`"
    DUPLICATE = "done and answered; a dispatch reaches its repository twice"


@dataclass
class Fault:
    """One thing that goes wrong with requests whose path `path` finds (re.search).

    It happens to the next `times` of them; where `times` is None, to a `share` (0 to 1) of them for good.
    """

    kind: Kind
    path: re.Pattern[str]
    times: int | None
    share: float
    status: int
    message: str
    seconds: float

    @property
    def headers(self) -> dict[str, str]:
        """What a limited answer says about the wait."""
        if self.kind is Kind.LIMIT:
            return {"Retry-After": f"{self.seconds:.0f}"}
        if self.kind is Kind.EXHAUST:
            reset = f"{time.time() + self.seconds:.0f}"
            return {"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
        return {}


class Faults:
    """What goes wrong with each request. The same `seed` and the same order of requests bring the same luck."""

    def __init__(self, seed: int) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._chance = random.Random(seed)

    def add(self, fault: Fault) -> None:
        """Let it go wrong from the next request on. What was added before goes first."""
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        """Let everything go well again."""
        with self._lock:
            self._faults.clear()

    def draw(self, path: str) -> list[Fault]:
        """What goes wrong with this request: all that slows it, and the first of the other kinds that strikes."""
        drawn: list[Fault] = []
        is_settled = False
        with self._lock:
            for fault in self._faults:
                is_slow = fault.kind is Kind.SLOW
                if (is_settled and not is_slow) or not fault.path.search(path) or not self._strikes(fault):
                    continue
                drawn.append(fault)
                is_settled = is_settled or not is_slow
        return drawn

    def _strikes(self, fault: Fault) -> bool:
        if fault.times is None:
            return self._chance.random() < fault.share
        fault.times -= 1
        return fault.times >= 0
