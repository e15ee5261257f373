"""What fails for a while is tried again: after a growing wait with chance in it, or as long as the other side asks."""

import email.utils
import random
import time
from collections.abc import Callable
from typing import Optional, TypeVar

from accelhub_client.console import clean, note
from accelhub_client.exits import Stop
from accelhub_client.refusals import brief
from accelhub_client.transport import Answer, Unreachable

ATTEMPTS = 6
PATIENCE_SECONDS = 600.0  # of waiting in all; who is asked to wait longer gives up at once
_FIRST_WAIT, _GROWTH, _LONGEST_WAIT = 1.0, 3.0, 60.0
_AGAIN = (408, 425, 429)

Result = TypeVar("Result")


def is_passing(status: int) -> bool:
    """Whether the same request may succeed later."""
    return status >= 500 or status in _AGAIN


def retried(what: str, ask: Callable[[], Answer], read: Callable[[Answer], Result], attempts: int = ATTEMPTS) -> Result:
    """Ask until an answer comes that is not only passing, and read it. Raises Stop `unavailable`, and what `ask` and
    `read` raise."""
    waited, attempt = 0.0, 1
    while True:
        asked_to_wait = None
        try:
            answer = ask()
        except Unreachable as error:
            seen = clean(error)
        else:
            if not is_passing(answer.status):
                return read(answer)
            seen, asked_to_wait = brief(answer), retry_after(answer)
        wait = _wait(attempt) if asked_to_wait is None else asked_to_wait
        if attempt >= attempts or waited + wait > PATIENCE_SECONDS:
            later = f" It asks to be left alone for {asked_to_wait:.0f} s." if asked_to_wait is not None else ""
            raise Stop("unavailable", f"{what}: {seen}. Gave up after {attempt} of {attempts} attempts.{later}")
        attempt, waited = attempt + 1, waited + wait
        note(f"{what}: {seen}. Attempt {attempt} of {attempts} in {wait:.1f} s.")
        time.sleep(wait)


def retry_after(answer: Answer) -> Optional[float]:
    """The seconds of Retry-After, a number or a date; None where it says neither."""
    said = (answer.headers.get("Retry-After") or "").strip()
    if said.isdecimal() and len(said) < 10:
        return float(said)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(said).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _wait(attempt: int) -> float:
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * _GROWTH ** (attempt - 1))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads clients, hides nothing
