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
# What `curl --retry` takes for passing trouble.
RETRIED = frozenset({408, 429, 500, 502, 503, 504})


class Unreachable(Exception):
    """No answer within the bound of attempts."""


class Interrupted(Exception):
    """The simulator is closing: nothing was decided."""


def send(method: str, url: str, **options: Any) -> requests.Response:
    """One request to loopback. Raises requests.RequestException."""
    with requests.Session() as session:
        # A proxy from the environment would be asked for 127.0.0.1, and a netrc entry would replace our credentials.
        session.trust_env = False
        return session.request(method, url, timeout=TIMEOUT_SECONDS, **options)


def send_with_retries(
    method: str, url: str, *, closing: threading.Event, first_wait: float = FIRST_WAIT_SECONDS, **options: Any
) -> requests.Response:
    """The first answer that is final, trying up to ATTEMPTS times with doubling waits (seconds).

    An answer in RETRIED is tried again, and returned if it is the last. Raises Unreachable, or Interrupted as soon
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
        if response is not None and (response.status_code not in RETRIED or attempt == ATTEMPTS):
            return response
        if trouble is not None and attempt == ATTEMPTS:
            raise Unreachable(f"{method} {url}: {type(trouble).__name__}") from trouble
        pause = wait if response is None else max(wait, _retry_after(response))
        log.debug("%s %s: trying again in %.1f s", method, url, pause)
        if closing.wait(min(pause, LONGEST_WAIT_SECONDS)):
            raise Interrupted
        wait *= 2
    raise AssertionError("unreachable")  # the last attempt returned or raised


def one_line(response: requests.Response) -> str:
    """An answer for the log: status and the beginning of its text, on one line."""
    text = " ".join(response.text.split())[:300]
    return f"{response.status_code} {text}"


def _retry_after(response: requests.Response) -> float:
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else 0.0
