"""The definitions, pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.results import metrics
from apps.results.figure_table import KINDS, METRICS
from apps.results.metrics import BUCKETS, ENDED, Counted, Figure

COUNTED = Counted(
    buckets={"success": 90, "failure": 4, "timed_out": 2, "cancelled": 3, "contradicted": 1, "in_progress": 5}
    | {"superseded": 7, "unheard": 6},
    first_ended=80,
    first_success=60,
    listed_apart=3,
    timed=98,
    overrun=1,
    queued=10,
    queue_seconds=600,
    runs=(30, 10, 20, 40),
    red=7,
    acknowledged=(300, 60),
    sent=30,
    answered=19,
    undecided=5,
)


def test_every_figure_of_one_window() -> None:
    assert metrics.figures(COUNTED) == {
        "pass_rate": Figure(0.9, 100, 90),
        "adjusted_pass_rate": Figure(0.93, 100, 93),
        "first_attempt_pass_rate": Figure(0.75, 80, 60),
        "timeout_rate": Figure(0.02, 100, 2),
        "overrun_rate": Figure(1 / 98, 98, 1),
        "avg_queue_seconds": Figure(60.0, 10),
        "e2e_seconds_p50": Figure(20, 4),
        "answer_rate": Figure(0.76, 25, 19),
        "silence_count": Figure(6, 25, 6),
        "acknowledge_seconds_p50": Figure(60, 2),
        "acknowledged_rate": Figure(2 / 7, 7, 2),
    }


def test_nothing_is_no_data_never_zero() -> None:
    assert metrics.figures(Counted()) == {
        "pass_rate": Figure(None, 0, 0),
        "adjusted_pass_rate": Figure(None, 0, 0),
        "first_attempt_pass_rate": Figure(None, 0, 0),
        "timeout_rate": Figure(None, 0, 0),
        "overrun_rate": Figure(None, 0, 0),
        "avg_queue_seconds": Figure(None, 0),
        "e2e_seconds_p50": Figure(None, 0),
        "answer_rate": Figure(None, 0, 0),
        "silence_count": Figure(None, 0, 0),
        "acknowledge_seconds_p50": Figure(None, 0),
        "acknowledged_rate": Figure(None, 0, 0),
    }
    running = Counted(buckets={"in_progress": 3})
    assert metrics.pass_rate(running) == Figure(None, 0, 0)


def test_the_table_of_metrics_names_what_is_computed() -> None:
    assert [metric.key for metric in METRICS] == list(metrics.figures(Counted()))
    assert {metric.unit for metric in METRICS} == {"share", "seconds", "count"}
    assert set(ENDED) < set(BUCKETS)
    for metric in METRICS:
        assert set(metric.kinds) == {kind.key for kind in KINDS}, metric.key


@pytest.mark.parametrize(("values", "median"), [((), None), ((5,), 5), ((1, 2), 1), ((3, 1, 2), 2), ((4, 1, 3, 2), 2)])
def test_the_median_is_a_value_that_was_seen(values: tuple[int, ...], median: int | None) -> None:
    assert metrics.median(values) == median


@pytest.mark.parametrize(
    ("rate", "tone"),
    [(None, "quiet"), (1.0, "good"), (0.97, "good"), (0.969, "warn"), (0.9, "warn"), (0.899, "bad"), (0.0, "bad")],
)
def test_no_data_is_never_green(rate: float | None, tone: str) -> None:
    assert metrics.tone_of_rate(rate) == tone


_counts = st.integers(0, 1_000)
_counted = st.builds(
    Counted,
    buckets=st.fixed_dictionaries(dict.fromkeys(BUCKETS, _counts)),
    first_ended=_counts,
    first_success=_counts,
    listed_apart=_counts,
    timed=_counts,
    overrun=_counts,
    queued=_counts,
    queue_seconds=_counts,
    runs=st.lists(_counts, max_size=5).map(tuple),
    red=_counts,
    acknowledged=st.lists(_counts, max_size=5).map(tuple),
)


@given(st.lists(_counted, max_size=6), st.integers(0, 6))
def test_days_add_up_in_any_grouping(parts: list[Counted], cut: int) -> None:
    whole = metrics.add(parts)
    assert metrics.add([metrics.add(parts[:cut]), metrics.add(parts[cut:])]) == whole
    assert whole.rows == sum(part.rows for part in parts)
    assert (
        whole.ended + sum(whole.buckets[name] for name in ("in_progress", "superseded", "unheard", "informational"))
        == whole.rows
    )
