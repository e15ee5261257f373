"""The night's evaluation of a field of the overview's size, replays of all that are asked for one among it."""

import datetime
import time

from django.db import connection

from bench import overview

STABLE, MATURE = 15, 5


def run() -> None:
    """Fill, count, and evaluate a night; beside it a plain read of each repository's counts of jobs."""
    from apps.core.clock import now
    from apps.governance.nights import evaluate_field
    from apps.platforms.models import LevelInterval, Repository
    from apps.results.services import recount

    print(f"\nNightly evaluation: {overview.PLATFORMS} repositories, {overview.JOBS:,} jobs over {overview.DAYS} days")
    overview._fill()
    _raise()
    recount(days=overview.DAYS + 1, now=now())
    print({level: Repository.objects.filter(level=level).count() for level in (2, 3, 4)}, LevelInterval.objects.count())
    begun = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute("SELECT repository_id, bucket, count(*) FROM relay_job GROUP BY 1, 2")
        cursor.fetchall()
    print(f"{'floor: one count over all jobs':<42} {time.perf_counter() - begun:6.2f} s")
    begun = time.perf_counter()
    rows = evaluate_field(now=now())
    print(f"{'the night':<42} {time.perf_counter() - begun:6.2f} s, {rows} rows")


def _raise() -> None:
    """Some are at L3 and at L4, all since long ago."""
    from apps.core.clock import now
    from apps.platforms.models import LevelInterval, Repository

    keys = list(Repository.objects.filter(full_name__endswith="/overview").order_by("pk").values_list("pk", flat=True))
    for level, chosen in ((3, keys[:STABLE]), (4, keys[STABLE : STABLE + MATURE])):
        Repository.objects.filter(pk__in=chosen).update(level=level, device="npu" if level == 3 else "")
        LevelInterval.objects.filter(repository__in=chosen).update(level=level)
    LevelInterval.objects.update(started_at=now() - datetime.timedelta(days=2 * overview.DAYS))
