"""One event to many downstreams: how long until GitHub has taken every dispatch, from one worker.

The stand-in answers every request in 200 ms. Beside each figure the ideal for that many threads: the rounds of requests
that cannot be had sooner. The first event also asks for each repository's installation and token, the next does not.
"""

import math
import os
import time

from bench import hub

DOWNSTREAMS = int(os.environ.get("BENCH_DOWNSTREAMS", "100"))
ANSWER_SECONDS = 0.2
BOUND_SECONDS = 120


def run() -> None:
    """Print seconds until all are sent, for a worker without tokens and for one that has them."""
    concurrency = int(next(word for word in hub.program("relay").arguments if "concurrency" in word).partition("=")[2])
    rounds = math.ceil(DOWNSTREAMS / concurrency)
    print(
        f"\nFan-out: one event to {DOWNSTREAMS} downstreams, the stand-in answers in {ANSWER_SECONDS * 1e3:.0f} ms, "
        f"one worker of {concurrency} threads"
    )
    with hub.standin(keep=10 * DOWNSTREAMS) as github:
        hub.list_repositories(github, DOWNSTREAMS)
        github.delay_seconds = ANSWER_SECONDS
        with hub.running("relay"):
            for delivery_id, name, requests in (
                ("fanout-1", "the first event: installation, token, dispatch", 3),
                ("fanout-2", "the next event: tokens are kept", 1),
            ):
                took = _measure(delivery_id)
                ideal = rounds * requests * ANSWER_SECONDS
                print(f"{name:<58} {took:7.2f} s   ideal {ideal:5.2f} s   (aim: 5 s)")
        github.delay_seconds = 0


def _measure(delivery_id: str) -> float:
    """Seconds from the stored webhook to the last dispatch's `sent`."""
    from apps.relay.models import Dispatch

    begun = time.monotonic()
    hub.receive(delivery_id)
    sent = Dispatch.objects.filter(delivery__delivery_id=delivery_id, state="sent")
    while sent.count() < DOWNSTREAMS:
        if time.monotonic() - begun > BOUND_SECONDS:
            raise RuntimeError(f"{sent.count()} of {DOWNSTREAMS} were sent in {BOUND_SECONDS} s")
        time.sleep(0.02)
    return time.monotonic() - begun
