"""How many callbacks a repository may send: a moving window in Redis. Upstream's figure."""

import logging
import time
from functools import lru_cache

from django.conf import settings
from limits import RateLimitItemPerMinute
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter
from redis import RedisError

from apps.core import clock
from apps.core.errors import Problem

log = logging.getLogger(__name__)

CALLBACKS_PER_MINUTE = 100
_LIMIT = RateLimitItemPerMinute(CALLBACKS_PER_MINUTE, namespace="accelhub")


@lru_cache(maxsize=1)
def _limiter() -> MovingWindowRateLimiter:
    url = settings.REDIS_URL
    # The library spells a socket address `redis+unix`.
    storage_url = "redis+unix" + url.removeprefix("unix") if url.startswith("unix://") else url
    return MovingWindowRateLimiter(
        RedisStorage(storage_url, key_prefix="limits", socket_timeout=1, socket_connect_timeout=1)
    )


def check(github_id: int) -> None:
    """Count one callback of a repository. Raises Problem `rate_limited` with Retry-After in seconds.

    A refused call is not counted, so waiting as told is enough. Without Redis everyone passes, and the log says so.
    """
    # The window is one of real minutes, into which a demo fits weeks of pretended ones.
    if clock.pretended() is not None:
        return
    try:
        limiter, key = _limiter(), str(github_id)
        if limiter.hit(_LIMIT, "callback", key):
            return
        wait = max(1, round(limiter.get_window_stats(_LIMIT, "callback", key).reset_time - time.time()))
    except (RedisError, OSError) as error:
        log.error("rate limit not checked, Redis does not answer: %s", error)
        return
    raise Problem(
        "rate_limited",
        f"More than {CALLBACKS_PER_MINUTE} callbacks of this repository in a minute. Wait {wait} s.",
        headers={"Retry-After": str(wait)},
    )
