"""How many callbacks a repository may send. Upstream's figure."""

from apps.core import clock
from apps.core.limits import Limit

CALLBACKS_PER_MINUTE = 100
LIMIT = Limit("callback", CALLBACKS_PER_MINUTE, "callbacks of this repository")


def check(number: str) -> None:
    """Count one callback of a repository or pipeline, by the number of its identity. Raises Problem `rate_limited`.

    The window is one of real minutes, into which a demo fits weeks of pretended ones: those are not counted.
    """
    if clock.pretended() is None:
        LIMIT.take(number)
