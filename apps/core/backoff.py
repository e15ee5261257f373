"""How long to wait before a request that was not taken is sent again: one table for every outbox and every question."""

# After so many failed attempts, wait up to so many seconds: each four times the one before, up to an hour. Where in
# between is chance's to say (full jitter), so that what failed together is not sent again together.
BACKOFF_SECONDS = (5, 20, 80, 320, 1_280, 3_600)
ATTEMPTS_MAX = len(BACKOFF_SECONDS) + 1
# A wait that the other side asks for is kept, but never longer than its rate limits last.
ASKED_WAIT_MAX_SECONDS = 3_600


def backoff_seconds(attempt: int, jitter: float, *, asked: float = 0.0) -> float | None:
    """How long to wait after the failed `attempt` (from 1); None when there is no further one.

    `jitter` is from 0 up to 1. `asked` is the wait that the other side asked for: it is kept first, and chance comes on
    top.
    """
    if attempt >= ATTEMPTS_MAX:
        return None
    return min(asked, ASKED_WAIT_MAX_SECONDS) + jitter * BACKOFF_SECONDS[attempt - 1]
