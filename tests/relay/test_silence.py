"""Jobs of which nothing is heard: looked up once, ended as timed out, and put right by a late answer."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.core.clock import now
from apps.core.models import Wakeup
from apps.relay import lookups, tasks
from apps.relay.lookups import close_silent, silent_runs
from apps.relay.models import Job, TimeLimit
from apps.results.models import DayFigures
from apps.results.services import count_days
from tests.factories.listing import listed
from tests.factories.pages import Page
from tests.relay.downstream import Downstream, answer, refusal
from tests.relay.test_callback import APPLIED, DUPLICATE, KESTREL, dispatch

pytestmark = pytest.mark.django_db
HOUR = datetime.timedelta(hours=1)


@pytest.fixture
def kestrel(downstream: Callable[..., Downstream], client: Client) -> Downstream:
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    dispatch(client)
    return made


def sweep(after: datetime.timedelta) -> int:
    """What the beat and its tasks do, so much later."""
    moment = now() + after
    return sum(close_silent(run=run, job_pks=pks, now=moment) for run, pks in silent_runs(now=moment).items())


def jobs() -> list[tuple[Any, ...]]:
    return list(Job.objects.order_by("pk").values_list("status", "conclusion", "bucket", "flags"))


def asked(made: Downstream) -> int:
    return sum("/attempts/" in request.path for request in made.github.requests)


INFERRED = ("completed", "timed_out", "timed_out", ["inferred"])


def test_a_silent_job_is_looked_up_once_and_becomes_timed_out_once(kestrel: Downstream) -> None:
    kestrel.start()
    kestrel.start(job_name="test", check_run_id="7")
    kestrel.github.record_job(KESTREL, run_id=kestrel.run_id, name="build", check_run_id="456", conclusion="failure")
    assert (sweep(HOUR * 5.9), jobs()[0][0]) == (0, "in_progress")
    Wakeup.objects.all().delete()
    assert sweep(HOUR * 6.1) == 2
    assert jobs() == [INFERRED, INFERRED]
    assert list(Job.objects.order_by("pk").values_list("github_said", flat=True)) == [
        "GitHub's job “build” ended as failure",
        "GitHub lists 1 jobs in the run, and none of this check run or name",
    ]
    job = Job.objects.order_by("pk")[0]
    assert (job.execution_seconds, job.trust["conclusion"], job.look_up_at) == (None, "measured", None)
    assert list(Wakeup.objects.values_list("topic", "key")) == [
        ("job_changed", f"{job.repository_id}:{job.first_seen_at.date()}")
    ]
    assert (sweep(HOUR * 9), asked(kestrel)) == (0, 1)
    page = Page(kestrel.client.get(f"/jobs/{job.public_id}/"))
    assert page.facts["about"]["Flags"] == "▲ ended by the hub: nothing was heard until its limit"
    assert page.facts["about"]["GitHub's record"] == "GitHub's job “build” ended as failure"


def test_a_late_real_answer_replaces_the_inferred_end_and_corrects_every_figure(kestrel: Downstream) -> None:
    kestrel.start()
    sweep(HOUR * 7)
    job = Job.objects.get()

    def figures() -> dict[str, int]:
        count_days([(job.repository_id, job.first_seen_at.date())], now=now())
        row = DayFigures.objects.get()
        return {"timed_out": row.timed_out, "success": row.success, "timed": row.timed, "runs": len(row.runs)}

    assert figures() == {"timed_out": 1, "success": 0, "timed": 0, "runs": 0}
    assert answer(kestrel.start()) == DUPLICATE
    Wakeup.objects.all().delete()
    assert answer(kestrel.end(test_results={"passed": 4, "failed": 0, "skipped": 0})) == APPLIED
    assert jobs() == [("completed", "success", "success", [])]
    assert list(Wakeup.objects.values_list("topic", flat=True)) == ["job_changed"]
    assert figures() == {"timed_out": 0, "success": 1, "timed": 1, "runs": 1}
    job.refresh_from_db()
    assert (job.execution_seconds is not None, job.github_said, job.look_up_at is not None) == (True, "", True)
    # From here on the first final answer stands.
    assert refusal(kestrel.end("failure")) == (409, "completion_conflict", "workflow.conclusion")
    assert sweep(HOUR * 50) == 0


def test_an_inferred_end_is_replaced_by_a_time_out_that_was_real(kestrel: Downstream) -> None:
    kestrel.start()
    sweep(HOUR * 7)
    assert answer(kestrel.end("timed_out")) == APPLIED
    assert jobs() == [("completed", "timed_out", "timed_out", [])]


@pytest.mark.parametrize("check_run", ["2", None])
def test_a_late_end_of_another_check_run_replaces_the_inferred_one_too(
    kestrel: Downstream, check_run: str | None
) -> None:
    kestrel.start(check_run_id="1")
    sweep(HOUR * 7)
    assert answer(kestrel.end(check_run_id=check_run)) == APPLIED
    assert jobs() == [("completed", "success", "success", ["joined"])]
    assert answer(kestrel.end(check_run_id=check_run)) == DUPLICATE


@pytest.mark.parametrize("level", [0, 1])
def test_a_job_that_began_before_its_repository_was_lowered_ends_like_any_other(
    kestrel: Downstream, level: int
) -> None:
    kestrel.start()
    listed({KESTREL: level})
    ignored = (200, {"ok": True, "status": "ignored"})
    assert answer(kestrel.start(job_name="begun below L2")) == ignored
    assert answer(kestrel.start()) == DUPLICATE
    assert answer(kestrel.end()) == APPLIED
    assert refusal(kestrel.end("failure")) == (409, "completion_conflict", "workflow.conclusion")
    assert answer(kestrel.end(job_name="begun below L2")) == ignored
    assert (sweep(HOUR * 7), jobs()) == (0, [("completed", "success", "success", [])])


def test_under_the_name_of_an_unlisted_repository_another_one_ends_nothing(kestrel: Downstream) -> None:
    kestrel.start()
    listed({KESTREL: 0})
    stranger = kestrel.token(repository_id="666", repository_owner_id="667")
    said = kestrel.post(kestrel.body(conclusion="success"), token=stranger)
    assert answer(said) == (200, {"ok": True, "status": "ignored"})
    assert jobs() == [("in_progress", "", "in_progress", [])]


def test_with_an_open_leg_beside_the_inferred_one_an_unseen_end_is_a_leg_of_its_own(kestrel: Downstream) -> None:
    kestrel.start(check_run_id="1")
    sweep(HOUR * 7)
    kestrel.start(check_run_id="2")
    assert answer(kestrel.end(check_run_id="3")) == APPLIED
    running: tuple[Any, ...] = ("in_progress", "", "in_progress", [])
    ended = ("completed", "success", "success", ["start_lost"])
    assert jobs() == [INFERRED, running, ended]


@pytest.mark.parametrize("status", [502, 0, 404])
def test_github_failing_keeps_no_job_open(kestrel: Downstream, status: int) -> None:
    kestrel.github.fail("/attempts/", status=status, times=10)
    kestrel.start()
    assert (sweep(HOUR * 7), jobs(), asked(kestrel)) == (1, [INFERRED], 1)


def test_limits_are_the_jobs_own_else_the_repositorys_else_six_hours(kestrel: Downstream) -> None:
    kestrel.start()
    kestrel.start(job_name="long one")
    kestrel.start(job_name="short one")
    repository = Job.objects.first().repository  # type: ignore[union-attr]
    for name, limit in (("", 2), ("long one", 30), ("short one", 1)):
        TimeLimit.objects.create(repository=repository, job_name=name, seconds=limit * 3_600, declared_at=now())
    ended = []
    for hours in (0.9, 1.1, 1.9, 2.1, 29.0, 31.0):
        sweep(HOUR * hours)
        ended.append(set(Job.objects.filter(status="completed").values_list("job_name", flat=True)))
    every = {"build", "short one", "long one"}
    assert ended == [set(), {"short one"}, {"short one"}, {"short one", "build"}, {"short one", "build"}, every]


@pytest.mark.parametrize("name", ["123", "a:b/c", "🦅" * 150, "<b>x</b>"])
def test_any_job_name_is_swept(kestrel: Downstream, name: str) -> None:
    kestrel.start(job_name=name)
    assert (sweep(HOUR * 7), jobs()) == (1, [INFERRED])


def test_an_end_that_comes_while_github_is_asked_stands(kestrel: Downstream, monkeypatch: pytest.MonkeyPatch) -> None:
    kestrel.start()
    real = lookups._records_of

    def slow(run: lookups.RunKey) -> Any:
        kestrel.end()
        return real(run)

    monkeypatch.setattr(lookups, "_records_of", slow)
    assert (sweep(HOUR * 7), jobs()) == (0, [("completed", "success", "success", [])])


def test_a_lookup_whose_worker_died_is_not_made_again(kestrel: Downstream) -> None:
    kestrel.start()
    Job.objects.update(lookups=1)
    assert (sweep(HOUR * 7), jobs(), asked(kestrel)) == (1, [INFERRED], 0)
    assert Job.objects.get().github_said == "GitHub was asked, and the answer was lost"


def test_the_tasks_do_the_same(kestrel: Downstream, monkeypatch: pytest.MonkeyPatch) -> None:
    kestrel.start()
    Job.objects.update(first_seen_at=now() - HOUR * 7)
    handed: list[tuple[Any, ...]] = []
    monkeypatch.setattr(tasks.close_silent_run, "delay", lambda *args: handed.append(args))
    assert tasks.sweep_silent_jobs() == 1
    assert [tasks.close_silent_run(*args) for args in handed] == [1]
    assert jobs() == [INFERRED]
