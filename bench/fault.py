"""Nothing is lost: events while workers are killed at random and GitHub fails now and then.

Two relay workers; at random points of the work one of them gets SIGKILL, and a new one takes its place. The stand-in
takes a moment for each answer, so that a kill finds sends under way, and fails a share of the dispatches: half of those
unanswered, a part of these after it took them. In the place of beat this process sweeps each second, and takes a send
for lost sooner than a hub would, since the stand-in answers soon.

At its end every delivery must have one dispatch to each downstream, all of them sent, and the stand-in must have seen
each. More than one is a duplicate send: a worker died, or the answer was lost, between GitHub's yes and the hub's row.
"""

import os
import random
import signal
import subprocess
import time
from collections import Counter

from accelhub import processes
from bench import hub

EVENTS = int(os.environ.get("BENCH_FAULT_EVENTS", "60"))
DOWNSTREAMS = int(os.environ.get("BENCH_FAULT_DOWNSTREAMS", "10"))
SEED = int(os.environ.get("BENCH_FAULT_SEED", "1"))
FAILED, DROPPED, LOST = 0.025, 0.015, 0.01  # together the 5 % of dispatches that go wrong
WORKERS = 2
KILLS = 12  # about so many, spread over the work
ANSWER_SECONDS = 0.05
LOST_AFTER_SECONDS = 10.0
# Longer than the outbox could need: a hub that stands still is found out.
BOUND_SECONDS = 180 + EVENTS * DOWNSTREAMS * 0.1
SWEEP_SECONDS, LOOK_SECONDS = 1.0, 0.05


def run() -> None:
    """Print what was lost, in a wrong state, and sent more than once."""
    from apps.relay.models import Dispatch
    from apps.simulator.standin import Kind

    chance = random.Random(SEED)
    total = EVENTS * DOWNSTREAMS
    print(f"\nFault: {EVENTS:,} events to {DOWNSTREAMS} downstreams, {WORKERS} workers, seed {SEED}")
    with hub.standin(keep=4 * total) as github:
        hub.list_repositories(github, DOWNSTREAMS)
        for kind, share in ((Kind.FAIL, FAILED), (Kind.DROP, DROPPED), (Kind.LOSE, LOST)):
            github.spoil("/dispatches$", kind, times=None, share=share)
        github.spoil("/dispatches$", Kind.SLOW, times=None, seconds=ANSWER_SECONDS)
        begun = time.monotonic()
        kills = _drive(chance, begun)
        seconds = time.monotonic() - begun
        accepted = Counter((one.repository, one.client_payload["delivery_id"]) for one in github.dispatches)
    rows = Dispatch.objects.filter(delivery__delivery_id__startswith="fault-")
    states = Counter(rows.values_list("state", flat=True))
    sent = set(rows.filter(state="sent").values_list("repository__full_name", "delivery__delivery_id"))
    lost = total - len(accepted)
    wrong = total - len(sent & set(accepted))
    print(f"{kills} workers killed; {rows.filter(attempts__gt=1).count():,} of {total:,} needed more than one attempt")
    print(f"rows by state: {dict(states)}")
    duplicates = sum(accepted.values()) - len(accepted)
    print(f"lost {lost}, wrong state {wrong}, duplicate sends {duplicates}   ({seconds:.0f} s)")


def _drive(chance: random.Random, begun: float) -> int:
    """Send the events, kill and restart workers, sweep; until everything is sent or time is up. Returns the kills."""
    from apps.core.clock import now
    from apps.core.wakeups import drain
    from apps.relay.models import Dispatch
    from apps.relay.outbox import sweep

    total = EVENTS * DOWNSTREAMS
    sent = Dispatch.objects.filter(delivery__delivery_id__startswith="fault-", state="sent")
    workers: list[subprocess.Popen[bytes]] = []
    kills = events = done = 0
    next_kill, next_sweep = chance.randint(1, 2 * total // KILLS), 0.0
    try:
        workers.extend(hub.start(hub.program("relay")) for _ in range(WORKERS))
        hub.until_ready(("relay",))
        while done < total and time.monotonic() - begun < BOUND_SECONDS:
            if time.monotonic() >= next_sweep:
                for _ in range(min(EVENTS - events, max(1, EVENTS // 20))):
                    hub.receive(f"fault-{events}")
                    events += 1
                sweep(now=now(), lost_after_seconds=LOST_AFTER_SECONDS)
                drain()
                next_sweep = time.monotonic() + SWEEP_SECONDS
            if done >= next_kill:
                victim = chance.randrange(WORKERS)
                processes.stop(workers[victim], signal.SIGKILL, 5)
                workers[victim] = hub.start(hub.program("relay"))
                kills += 1
                next_kill = done + chance.randint(1, 2 * total // KILLS)
            time.sleep(LOOK_SECONDS)
            done = sent.count()
    finally:
        for worker in workers:
            processes.stop(worker, signal.SIGKILL, 5)
    return kills
