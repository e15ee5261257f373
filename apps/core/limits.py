"""How often something may be done: moving windows of a minute in Redis. Without Redis everyone passes."""

import time
from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings
from limits import RateLimitItemPerMinute
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter
from redis import RedisError

from apps.core import alarms, clock
from apps.core.errors import Problem
from apps.core.models import Alarm


@lru_cache(maxsize=4)
def _limiter(url: str) -> MovingWindowRateLimiter:
    # The library spells a socket address `redis+unix`.
    storage_url = "redis+unix" + url.removeprefix("unix") if url.startswith("unix://") else url
    return MovingWindowRateLimiter(
        RedisStorage(storage_url, key_prefix="limits", socket_timeout=1, socket_connect_timeout=1)
    )


@dataclass(frozen=True)
class Limit:
    """At most `per_minute` of `what` (a plural) for one key, in real minutes. `name` tells its keys from others'."""

    name: str
    per_minute: int
    what: str

    def take(self, key: str) -> None:
        """Count one. Raises Problem `rate_limited`, with Retry-After in seconds, where there were too many; a refused
        one is not counted, so waiting as told is enough."""
        self._ask(key, is_counted=True)

    def check(self, key: str) -> None:
        """Refuse like `take`, and count nothing."""
        self._ask(key, is_counted=False)

    def _ask(self, key: str, *, is_counted: bool) -> None:
        item = RateLimitItemPerMinute(self.per_minute, namespace="accelhub")
        try:
            limiter = _limiter(settings.REDIS_URL)
            if (limiter.hit if is_counted else limiter.test)(item, self.name, key):
                return
            wait = max(1, round(limiter.get_window_stats(item, self.name, key).reset_time - time.time()))
        except (RedisError, OSError) as error:
            detail = f"Redis does not answer, so the limit of {self.what} is not applied: {error}"
            alarms.sound(Alarm.Kind.LIMIT_OPEN, self.name, detail=detail, now=clock.now())
            return
        raise Problem(
            "rate_limited",
            f"More than {self.per_minute} {self.what} in a minute. Wait {wait} s.",
            headers={"Retry-After": str(wait)},
        )
