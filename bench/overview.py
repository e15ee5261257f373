"""Page times with a field of the size that is to be carried: 100 platforms, a million jobs, made in bulk."""

import os
import time
from typing import Any

from django.db import connection
from django.test import Client

from bench import figures

PLATFORMS = int(os.environ.get("BENCH_PLATFORMS", "100"))
JOBS = int(os.environ.get("BENCH_JOBS", "1000000"))
DAYS = 30
ROUNDS = 30


def run() -> None:
    """Fill, count, then time each page whole: view, queries, template, in one process."""
    print(f"\nPages: {PLATFORMS} platforms, {JOBS:,} jobs over {DAYS} days")
    begun = time.perf_counter()
    _fill()
    print(f"jobs made in bulk in {time.perf_counter() - begun:.1f} s")
    from apps.core.clock import now
    from apps.results.services import recount

    begun = time.perf_counter()
    days = recount(days=DAYS + 1, now=now())
    each = (time.perf_counter() - begun) / max(days, 1) * 1e3
    print(f"{days:,} repository days counted in {time.perf_counter() - begun:.1f} s, {each:.1f} ms a day")
    client = Client(headers={"Host": "127.0.0.1"})
    for path in ("/", "/platforms/", "/platforms/bench-1-overview/", "/platforms/bench-1-overview/?view=all", "/pr/7/"):
        time_page(client, path)


def time_page(client: Client, path: str) -> None:
    """Print what a page takes, and its queries."""
    asked: list[float] = []

    def ask(execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        begun = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            asked.append(time.perf_counter() - begun)

    with connection.execute_wrapper(ask):
        response: Any = client.get(path)
    assert response.status_code == 200, (path, response.status_code)
    queries, in_them = len(asked), sum(asked) * 1e3
    seconds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        client.get(path)
        seconds.append(time.perf_counter() - begun)
    p50, p99 = figures.percentile(seconds, 0.5) * 1e3, figures.percentile(seconds, 0.99) * 1e3
    size = len(response.content) / 1024
    times = f"p50 {p50:6.1f} ms   p99 {p99:6.1f} ms"
    print(f"{path:<42} {times}   {queries} queries, {in_them:.0f} ms in them   {size:.0f} KiB")


def _fill() -> None:
    from apps.audit.services import command_actor
    from apps.core.clock import now
    from apps.platforms.allowlist import parse
    from apps.platforms.services import import_allowlist

    text = "L2:\n" + "".join(f"- bench-{number}/overview\n" for number in range(PLATFORMS))
    import_allowlist(allowlist=parse(text), source="bench", sha256="0" * 64, actor=command_actor("bench"), now=now())
    runs = JOBS // 3
    with connection.cursor() as cursor:
        # One delivery in 100 runs is enough of a field: each of them asked every platform.
        cursor.execute(
            "INSERT INTO relay_delivery (delivery_id, event, action, state, received_at, body, pr_number, title, "
            "head_sha, ref, is_late) SELECT 'o-' || n, 'pull_request', 'opened', 'fanned_out', "
            "now() - make_interval(secs => n * %s), '', n, 'Change number ' || n, md5('a' || n) || '00000000', 'x', "
            "false FROM generate_series(1, %s) n",
            [DAYS * 86_400 / (runs / PLATFORMS), runs // PLATFORMS],
        )
        cursor.execute(
            "INSERT INTO relay_dispatch (delivery_id, repository_id, state, created_at, changed_at, sent_at, attempts, "
            "attempts_allowed, error) SELECT d.id, r.id, 'sent', d.received_at, d.received_at, d.received_at, 1, 7, '' "
            "FROM relay_delivery d, platforms_repository r "
            "WHERE d.delivery_id LIKE 'o-%' AND r.full_name LIKE '%/overview'"
        )
        cursor.execute(
            "INSERT INTO relay_job (public_id, repository_id, dispatch_id, delivery_id, event_type, run_id, "
            "run_attempt, workflow, job_name, leg, check_run_id, url, artifact_url, head_sha, pr_number, status, "
            "conclusion, bucket, flags, first_seen_at, start_seen_at, completed_at, revision, joined_leg, provenance, "
            "verdict, github_said, lookups) "
            "SELECT gen_random_uuid(), x.repository_id, x.id, d.delivery_id, 'pull_request', x.id::text, 1, 'CI', "
            "'job-' || n, '', '', '', '', d.head_sha, d.pr_number, 'completed', c.word, c.word, '{}', "
            "x.sent_at + interval '2 min', x.sent_at + interval '2 min', "
            "x.sent_at + make_interval(secs => 600 + x.id % 900), 1, '', 'confirmed', 'verified', '', 0 "
            "FROM relay_dispatch x JOIN relay_delivery d ON d.id = x.delivery_id, generate_series(1, 3) n, "
            "LATERAL (SELECT CASE WHEN (x.id * 7 + n) % 20 = 0 THEN 'failure' ELSE 'success' END AS word) c "
            "WHERE d.delivery_id LIKE 'o-%'"
        )
        cursor.execute("ANALYZE")
