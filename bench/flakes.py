"""Flaky tests: precision and recall in a simulated field, and how long a full run's report takes beyond ingestion."""

import math
import os
import time
from typing import Any

from bench import reports_data

CASES = int(os.environ.get("BENCH_CASES", str(reports_data.CASES)))
# Never to be tuned on: 1 to 20 are there for that.
SEEDS = range(1_001, 1_021)
DECILES = 10


def run() -> None:
    """Print both rule sets that ship, then the times."""
    from apps.quarantine.policy import SHIPPED

    for name, rules in SHIPPED.items():
        _field(name, rules)
    _times()


def _field(name: str, rules: Any) -> None:
    from bench import flakes_field

    results = [flakes_field.simulated(seed, rules) for seed in SEEDS]
    flaky = sum(len(one.field.flaky) for one in results)
    print(
        f"\nFlakes, rules “{name}”: {len(SEEDS)} fields of {results[0].field.tests:,} tests, {flakes_field.DAYS} days "
        f"of {flakes_field.RUNS_A_DAY} runs; {flaky:,} flaky tests"
    )
    wrong = sum(len(one.flagged - one.field.flaky.keys()) for one in results)
    right = sum(len(one.flagged & one.field.flaky.keys()) for one in results)
    regressions = sum(len(one.flagged & one.field.regressed.keys()) for one in results)
    raised = sum(len(one.raised & one.field.regressed.keys()) for one in results)
    total = sum(len(one.field.regressed) for one in results)
    low, high = math.log(flakes_field.P_LEAST), math.log(flakes_field.P_MOST)
    print(f"{'probability a run':<20} {'tests':>6} {'found':>6} {'recall':>7} {'precision':>10}")
    for decile in range(DECILES):
        begin, end = (math.exp(low + (high - low) * at / DECILES) for at in (decile, decile + 1))
        of = [{test for test, p in one.field.flaky.items() if begin <= p < end} for one in results]
        count = sum(map(len, of))
        found = sum(len(one.flagged & tests) for one, tests in zip(results, of, strict=True))
        # Of what is flagged in this decile or wrongly: the same wrong ones stand beside each.
        precision = f"{found / (found + wrong):10.1%}" if found + wrong else "   nothing"
        print(f"{begin:8.2%} to {end:7.2%} {count:>6} {found:>6} {found / count if count else 0:>7.1%} {precision}")
    print(
        f"{'all':<20} {flaky:>6} {right:>6} {right / flaky:>7.1%} {right / max(right + wrong, 1):>10.1%}; wrongly: "
        f"{wrong}, regressions among them: {regressions}; {raised} of {total} regressions raised"
    )


def _times() -> None:
    """Full runs' reports one after another, second attempts among them: each is settled, then detected."""
    import datetime

    from apps.core.clock import now
    from apps.quarantine import detection, evidence
    from bench.flakes_reports import FLAKY_SHARE, RED_SHARE, written

    shares = f"{RED_SHARE:.1%} red and {FLAKY_SHARE:.1%} flaky"
    print(f"\nDetection beyond ingestion: a report of {CASES:,} tests, {shares}, others each run")
    for report in written(CASES, begun=now() - datetime.timedelta(hours=9)):
        begun = time.perf_counter()
        evidence.settle(report_pk=report.pk, now=now())
        settled = time.perf_counter()
        changed = detection.detect(place=detection.Place(report.platform, report.variant), now=now())
        ended = time.perf_counter()
        print(
            f"run {report.run_id}.{report.run_attempt:<4} evidence {settled - begun:6.2f} s   detection "
            f"{ended - settled:6.2f} s   {changed} proposals"
        )
