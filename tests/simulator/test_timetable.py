"""Tasks run in the order of their times, one that fails or blocks holds up no other, and threads end."""

import threading
import time

import pytest

from apps.simulator.timetable import Timetable
from tests.simulator.tiny_hub import eventually


def test_tasks_run_when_they_are_due() -> None:
    done: list[str] = []
    with Timetable(workers=1) as timetable:
        timetable.after(0.10, lambda: done.append("later"))
        timetable.after(0.02, lambda: done.append("sooner"))
        timetable.after(-5, lambda: done.append("at once"))
        eventually(lambda: len(done) == 3)
    assert done == ["at once", "sooner", "later"]


def test_a_failing_task_is_logged_and_the_next_one_runs(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()
    with Timetable(workers=1) as timetable:
        timetable.after(0, lambda: 1 // 0)
        timetable.after(0, done.set)
        assert done.wait(5)
    assert "A simulated step failed" in caplog.text


def test_a_busy_worker_does_not_take_the_clock_with_it() -> None:
    release, done = threading.Event(), threading.Event()
    with Timetable(workers=2) as timetable:
        time.sleep(0.05)  # both wait for anything
        timetable.after(0.05, lambda: release.wait(5))
        timetable.after(0.10, done.set)
        assert done.wait(2)
        release.set()


def test_closing_forgets_what_has_not_begun_and_ends_the_threads() -> None:
    before = threading.active_count()
    done: list[int] = []
    timetable = Timetable(workers=3)
    timetable.after(60, lambda: done.append(1))
    timetable.close()
    timetable.after(0, lambda: done.append(2))
    eventually(lambda: threading.active_count() == before)
    assert done == []


def test_closing_waits_no_longer_than_it_may() -> None:
    release, begun = threading.Event(), threading.Event()
    timetable = Timetable(workers=1)
    timetable.after(0, begun.set)
    timetable.after(0, lambda: release.wait(5))
    assert begun.wait(5)
    start = time.monotonic()
    timetable.close(seconds=0.1)
    assert time.monotonic() - start < 1
    release.set()
