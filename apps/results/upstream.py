"""Upstream's own formulas for its criteria, over what counting.py keeps for them. Shown beside ours; no rule of the hub
reads them.

Source: the queries behind upstream's dashboard (docs/metrics.md says them in words). They differ from ours in what they
count: each (run, job name) once, by its highest attempt that is completed, whatever its workflow and however many legs
it had; conclusions as the downstream says them.
"""

from collections.abc import Iterable

from apps.results.metrics import Counted, Figure

# Upstream's test repository has jobs that are meant to go wrong. Upstream's queries know them by a part of their name.
TEST_REPOSITORY = "pytorch/crcr-test"
MEANT = {"%xfail%": "failure", "%xcancel%": "cancelled", "%xtimeout%": "timed_out"}


def upstream_figures(counted: Counted) -> dict[str, Figure]:
    """What upstream's dashboard would say, by metric. A metric of ours that it does not have is left out.

    Without rows upstream says 0 for its rates; here that is None, as everywhere.
    """
    return {
        "pass_rate": _share(counted.upstream_success, counted.upstream_jobs),
        "timeout_rate": _share(counted.upstream_timed_out, counted.upstream_jobs),
        "overrun_rate": _share(counted.upstream_overrun, counted.upstream_genuine),
        "avg_queue_seconds": Figure(
            counted.upstream_queue_seconds / counted.upstream_queued if counted.upstream_queued else None,
            counted.upstream_queued,
        ),
        "e2e_seconds_p50": Figure(upper_median(counted.upstream_runs), len(counted.upstream_runs)),
    }


def upper_median(values: Iterable[int]) -> int | None:
    """The exact median as upstream's database has it: the upper of the two middle values where there are two."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else None


def _share(part: int, whole: int) -> Figure:
    return Figure(part / whole if whole else None, whole, part)
