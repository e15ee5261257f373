"""Background tasks of the relay: each fetches by key, calls one service, and may run twice without harm."""

import random

from celery import shared_task

from apps.core.clock import now
from apps.relay import commits, lookups, modes, outbox, services, shadow

_chance = random.SystemRandom()


def fan_out_deliveries(keys: list[str]) -> None:
    """Wake-up handler of `delivery_received`: a bounded piece of database work, done on the spot."""
    decide = services.fan_out if modes.current().dispatches else shadow.intend
    for key in keys:
        decide(delivery_pk=int(key), now=now())


def enqueue_dispatches(keys: list[str]) -> None:
    """Wake-up handler of `dispatch_pending`."""
    for key in keys:
        send_dispatch.delay(int(key))


@shared_task
def send_dispatch(dispatch_pk: int) -> str | None:
    """Send one dispatch."""
    return outbox.send_dispatch(dispatch_pk=dispatch_pk, now=now(), chance=_chance.random())


@shared_task
def sweep_dispatches() -> int:
    """Wake deliveries and dispatches that are due or have lost their task, and let those go that waited for a place."""
    return outbox.sweep(now=now())


@shared_task
def look_up_due_runs() -> int:
    """Ask GitHub about runs whose ended jobs are due, a task each. Returns how many."""
    runs = lookups.due_runs(now=now())
    for run in runs:
        look_up_run.delay(run.repository_id, run.run_id, run.run_attempt)
    return len(runs)


@shared_task
def look_up_run(repository_id: int, run_id: str, run_attempt: int) -> int:
    """Compare what a run's jobs reported with GitHub's record of it."""
    return lookups.look_up_run(run=lookups.RunKey(repository_id, run_id, run_attempt), now=now())


@shared_task
def sweep_silent_jobs() -> int:
    """End jobs that were silent past their limit, a task for each run. Returns how many runs."""
    runs = lookups.silent_runs(now=now())
    for run, job_pks in runs.items():
        close_silent_run.delay(run.repository_id, run.run_id, run.run_attempt, job_pks)
    return len(runs)


@shared_task
def close_silent_run(repository_id: int, run_id: str, run_attempt: int, job_pks: list[int]) -> int:
    """End the silent jobs of one run."""
    run = lookups.RunKey(repository_id, run_id, run_attempt)
    return lookups.close_silent(run=run, job_pks=job_pks, now=now())


@shared_task
def look_up_commits() -> int:
    """Ask whether upstream knows the commits that nightly runs name."""
    return commits.look_up_commits(now=now())
