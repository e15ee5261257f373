"""HTTP between the simulator, its stand-in and the hub: all on this machine, so no proxy and no netrc."""

import logging
import threading
from typing import Any

import requests

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 10.0
ATTEMPTS = 6
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
# Under which time a demo's hub shall take a request (ISO, UTC, in the past).
CLOCK_HEADER = "X-AccelHub-Clock"
# What `curl --retry` takes for passing trouble.
RETRIED = frozenset({408, 429, 500, 502, 503, 504})


class Unreachable(Exception):
    """No answer within the bound of attempts."""


class Interrupted(Exception):
    """The simulator is closing: nothing was decided."""


def session() -> requests.Session:
    """Kept-alive connections to loopback. Not safe to use from several threads at once."""
    made = requests.Session()
    # A proxy from the environment would be asked for 127.0.0.1, and a netrc entry would replace our credentials.
    made.trust_env = False
    return made


def send(method: str, url: str, *, over: requests.Session | None = None, **options: Any) -> requests.Response:
    """One request to loopback, `over` a session or a connection of its own. Raises requests.RequestException."""
    if over is not None:
        return over.request(method, url, timeout=TIMEOUT_SECONDS, **options)
    with session() as own:
        return own.request(method, url, timeout=TIMEOUT_SECONDS, **options)


def send_with_retries(
    method: str,
    url: str,
    *,
    closing: threading.Event,
    first_wait: float = FIRST_WAIT_SECONDS,
    retried: frozenset[int] = RETRIED,
    **options: Any,
) -> requests.Response:
    """The first answer that is final, trying up to ATTEMPTS times with doubling waits (seconds).

    An answer in `retried` is tried again, and returned if it is the last. Raises Unreachable, or Interrupted as soon
    as `closing` is set.
    """
    wait = first_wait
    for attempt in range(1, ATTEMPTS + 1):
        if closing.is_set():
            raise Interrupted
        trouble: Exception | None = None
        response: requests.Response | None = None
        try:
            response = send(method, url, **options)
        except requests.RequestException as error:
            trouble = error
        if response is not None and (response.status_code not in retried or attempt == ATTEMPTS):
            return response
        if trouble is not None and attempt == ATTEMPTS:
            raise Unreachable(f"{method} {url}: {type(trouble).__name__}") from trouble
        pause = wait if response is None else max(wait, retry_after(response))
        log.debug("%s %s: trying again in %.1f s", method, url, pause)
        if closing.wait(min(pause, LONGEST_WAIT_SECONDS)):
            raise Interrupted
        wait *= 2
    raise AssertionError("unreachable")  # the last attempt returned or raised


def one_line(response: requests.Response) -> str:
    """An answer for the log: status and the beginning of its text, on one line."""
    text = " ".join(response.text.split())[:300]
    return f"{response.status_code} {text}"


def retry_after(response: requests.Response) -> float:
    """How long (seconds) an answer asks to wait; 0 where it does not say."""
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else 0.0
