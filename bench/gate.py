"""What the gate answers about one pull request with fifty downstreams, beside a plain read of the same rows."""

import hashlib
import os
import time
from typing import Any

from django.db import connection
from django.test import Client

from bench import gate_field
from bench.overview import time_page

DOWNSTREAMS = int(os.environ.get("BENCH_DOWNSTREAMS", "50"))
RED = int(os.environ.get("BENCH_RED", "100"))
ROUNDS = 20
NUMBER = 37
SHA = hashlib.md5(f"gate-{NUMBER}".encode(), usedforsecurity=False).hexdigest() + "00000000"


def run() -> None:
    """Fill, then ask by the function, the API and the page."""
    from apps.core.clock import now
    from apps.gate.selectors import question_of, told_of

    print(f"\nGate: one pull request, {DOWNSTREAMS} downstreams that block, reports of {gate_field.CASES:,} tests")
    made = gate_field.listed([f"bench-{number}/gate" for number in range(DOWNSTREAMS)], 4)
    main = gate_field.main_commits()
    gate_field.heads("gate-", 100, days=1, repositories=made)
    gate_field.reports(red=RED, of_main=main, repositories=made)

    def ask() -> Any:
        moment = now()
        return told_of(question_of(sha=SHA, at=moment))

    said = ask()
    print(
        f"verdict {said.answer.verdict}, {len(said.answer.requirements)} requirements; red reports of {RED} tests each"
    )
    for what, work in (("floor: its jobs and red tests, read", _read), ("the answer", ask)):
        work()
        seconds = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - begun)
        seconds.sort()
        print(f"{what:<42} p50 {seconds[ROUNDS // 2] * 1e3:6.1f} ms, the worst of {ROUNDS} {seconds[-1] * 1e3:6.1f} ms")
    client = Client(headers={"Host": "127.0.0.1"})
    for path in (f"/api/v1/gate/?sha={SHA}", f"/pr/{NUMBER}/"):
        time_page(client, path)


def _read() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM relay_job WHERE head_sha = %s", [SHA])
        cursor.fetchall()
        cursor.execute(
            "SELECT f.*, t.* FROM results_finding f JOIN results_test t ON t.id = f.test_id JOIN results_report r "
            "ON r.id = f.report_id JOIN relay_job j ON j.head_sha = r.head_sha AND j.repository_id = r.repository_id "
            "WHERE j.head_sha = %s AND j.bucket = 'failure'",
            [SHA],
        )
        cursor.fetchall()
