"""Had five repositories been blocking for fourteen days: the replay of each, beside a plain read of its rows."""

import os
import time
from collections.abc import Callable

from django.db import connection
from django.urls import get_resolver

from bench import gate_field

DAYS = 14
PULL_REQUESTS = int(os.environ.get("BENCH_PULL_REQUESTS", "200"))
REPOSITORIES = 5
ROUNDS = 5


def run() -> None:
    """Fill, then replay the repositories, as the night does."""
    from apps.core.clock import now
    from apps.gate.replay import replays

    count = PULL_REQUESTS * DAYS
    print(f"\nReplay: {DAYS} days of {PULL_REQUESTS} pull requests, {REPOSITORIES} repositories")
    begun = time.perf_counter()
    made = gate_field.listed([f"bench-{number}/replay" for number in range(REPOSITORIES)], 4)
    main = gate_field.main_commits()
    gate_field.heads("replay-", count, days=DAYS - 2, repositories=made)
    reports = gate_field.reports(red=3, of_main=main, repositories=made)
    print(f"{count:,} pull requests and {reports:,} reports made in bulk in {time.perf_counter() - begun:.1f} s")
    get_resolver().url_patterns  # noqa: B018  read once by each process, before it answers anything
    rows = sum(_read(one.pk) for one in made)
    floor = _seconds(lambda: [_read(one.pk) for one in made])
    print(f"{f'floor: their {rows:,} jobs and dispatches, read':<50} {floor}")
    print(f"{'the replays, together':<50} {_seconds(lambda: replays(made, days=DAYS, now=now()))}")
    for one in replays(made, days=DAYS, now=now()).values():
        said = one.written()
        print({key: said[key] for key in ("pull_requests", "blocked", "blocked_wrongly", "unknown", "hours_waited")})


def _seconds(work: Callable[[], object]) -> str:
    """The median of ROUNDS, and the worst."""
    taken = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    taken.sort()
    return f"p50 {taken[ROUNDS // 2]:6.2f} s, the worst of {ROUNDS} {taken[-1]:6.2f} s"


def _read(repository: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT j.*, x.*, d.* FROM relay_dispatch x JOIN relay_delivery d ON d.id = x.delivery_id "
            "LEFT JOIN relay_job j ON j.dispatch_id = x.id WHERE x.repository_id = %s AND x.created_at > now() - "
            "make_interval(days => %s)",
            [repository, DAYS + 1],
        )
        return len(cursor.fetchall())
