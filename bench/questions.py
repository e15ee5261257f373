"""What reports answer, timed: two full reports compared, one test's history over many, and the overview beside them.

Outcome files are written as a parse writes them; rows of reports are made in bulk.
"""

import os
import time
from typing import Any

import numpy as np
from django.test import Client

from bench import overview, reports_data
from bench.catalogue import outcomes_of, timed

CASES = int(os.environ.get("BENCH_CASES", str(reports_data.CASES)))
HISTORY = int(os.environ.get("BENCH_HISTORY", "200"))
REPORTS = int(os.environ.get("BENCH_REPORTS", "1000"))
ROUNDS = 10


def run() -> None:
    """A field of the overview's size, then reports of full size in it."""
    overview.run()
    print(f"\nReports of {CASES:,} tests: {HISTORY} with their outcomes, {REPORTS:,} in all")
    from apps.platforms.models import Repository
    from apps.results import catalogue
    from apps.results.names.rules import words_of

    names = [test.written("npu") for tests in reports_data.suite(cases=CASES) for test in tests]
    identified = timed("names written", lambda: catalogue.identify(names, words_of("npu")))
    repositories = list(Repository.objects.order_by("pk"))
    made = timed("outcome files and rows", lambda: _reports(repositories, identified))
    client = Client(headers={"Host": "127.0.0.1"})
    number = int(identified.tests[len(names) // 2])
    _best("compared, in this process", lambda: _compared(made[-2], made[-1]))
    compare = f"/compare/?base={made[-2].public_id}&head={made[-1].public_id}"
    _best("compared, the page", lambda: _page(client, compare))
    _best(f"history of one test over {HISTORY} reports, the page", lambda: _page(client, f"/tests/{number}/"))
    overview.time_page(client, "/")


def _reports(repositories: list[Any], identified: Any) -> list[Any]:
    """The newest HISTORY have their outcomes; of the others rows alone. Different seeds: some tests change."""
    import datetime

    from apps.core.clock import now
    from apps.results import outcomes
    from apps.results.models import Report
    from apps.results.parsing import counted

    made, moment = [], now()
    for at in range(REPORTS):
        repository = repositories[at % len(repositories)] if at < REPORTS - HISTORY else repositories[0]
        received = moment - datetime.timedelta(minutes=REPORTS - at)
        report = Report(
            repository=repository,
            variant="default",
            report_key=f"bench {at}",
            run_id=str(at),
            run_attempt=1,
            job_name="test",
            level=2,
            wanted=1,
            revision=1,
            state="ready",
            progress=100,
            received_at=received,
            changed_at=received,
            parsed_at=received,
        )
        written = outcomes_of(identified, seed=at) if at >= REPORTS - HISTORY else None
        counts = counted(written.outcome) if written else counted(np.zeros(1, np.int8))
        for name, count in counts.items():
            setattr(report, name, count)
        report.outcomes_name = f"outcomes/{report.public_id}/1.parquet"
        if written:
            report.outcomes_name = outcomes.write(written, report=str(report.public_id), revision=1)
        report.save(force_insert=True)
        made.append(report)
    return made


def _compared(base: Any, head: Any) -> None:
    from apps.results.compare import compared

    compared(base, head)


def _page(client: Client, path: str) -> None:
    answer: Any = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)


def _best(what: str, work: Any) -> None:
    """The median and the worst of some rounds, after one that nobody counts."""
    work()
    seconds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    seconds.sort()
    print(f"{what:<50} p50 {seconds[ROUNDS // 2] * 1e3:6.1f} ms, the worst of {ROUNDS} {seconds[-1] * 1e3:6.1f} ms")
