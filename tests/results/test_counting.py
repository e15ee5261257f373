"""The count of a day, in SQL, against the definitions written a second time in Python."""

import dataclasses
import datetime
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from apps.core.models import Wakeup
from apps.platforms.models import Repository
from apps.relay.models import Delivery, Dispatch, Job
from apps.relay.selectors import with_superseded
from apps.results import services, tasks
from apps.results.input_rows import input_rows, recount
from apps.results.metrics import BUCKETS, Counted, add, pass_rate
from apps.results.models import DayFigures
from apps.results.selectors import platform_windows
from tests.factories.figures import counted, of_jobs, of_rows
from tests.factories.jobs import acknowledgement
from tests.factories.listing import listed, user

pytestmark = pytest.mark.django_db
NOON = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.UTC)
TODAY = NOON.date()
_numbers = itertools.count(1)


def at(minutes: float) -> datetime.datetime:
    return NOON + datetime.timedelta(minutes=minutes)


@dataclass
class Run:
    """Jobs of one run, made straight as rows: their times are what is counted."""

    repository: Repository
    sent_at: datetime.datetime | None = NOON
    event: str = "pull_request"

    def __post_init__(self) -> None:
        self.run_id = str(next(_numbers))
        self.dispatch = None
        if self.event in ("pull_request", "push"):
            delivery = Delivery.objects.create(
                delivery_id=f"d-{self.run_id}", event=self.event, state="fanned_out", received_at=NOON
            )
            self.dispatch = Dispatch.objects.create(
                delivery=delivery,
                repository=self.repository,
                created_at=NOON,
                changed_at=NOON,
                state="sent" if self.sent_at else "sending",
                sent_at=self.sent_at,
            )

    def job(
        self,
        name: str,
        start: float | None,
        end: float | None = None,
        bucket: str = "success",
        *,
        attempt: int = 1,
        leg: str = "",
    ) -> Job:
        """A job that began and ended so many minutes after noon; `start` None: its start was never seen."""
        seen = start if start is not None else end
        assert seen is not None
        ended = end is not None
        return Job.objects.create(
            repository=self.repository,
            dispatch=self.dispatch,
            delivery_id=f"d-{self.run_id}",
            event_type=self.event,
            run_id=self.run_id,
            run_attempt=attempt,
            workflow="CI",
            job_name=name,
            leg=leg,
            status="completed" if ended else "in_progress",
            conclusion=(bucket if bucket != "contradicted" else "success") if ended else "",
            bucket=bucket if ended else "in_progress",
            first_seen_at=at(seen),
            start_seen_at=None if start is None else at(start),
            completed_at=at(end) if end is not None else None,
        )


@pytest.fixture
def kestrel() -> Repository:
    return listed({"kestrel-demo/torch-kestrel": 2})["kestrel-demo/torch-kestrel"]


def count(repository: Repository, day: datetime.date = TODAY) -> dict[str, Counted]:
    """Counted in SQL; and from the rows behind it alone, which has to give the same."""
    services.count_days([(repository.pk, day)], now=NOON)
    found = {row.scope: counted(row) for row in DayFigures.objects.filter(repository=repository, day=day)}
    for scope, sums in found.items():
        rows = input_rows(repository_id=repository.pk, scope=scope, first=day, last=day, now=NOON)
        assert recount(rows, first=day, last=day) == {day: of_rows(sums)}
    return {scope: of_jobs(sums) for scope, sums in found.items()}


def buckets(**counts: int) -> dict[str, int]:
    return dict.fromkeys(BUCKETS, 0) | counts


def test_a_day_with_everything_in_it(kestrel: Repository) -> None:
    run = Run(kestrel)
    run.job("build", 2, 12)
    run.job("test", 5, 65, "failure")
    run.job("slow", 3, 3 + 181)
    run.job("hung", 4, 4 + 360, "timed_out")
    run.job("lost start", None, 30)
    other = Run(kestrel)
    other.job("build", 1, 11, "cancelled")
    other.job("lying", 1, 11, "contradicted")
    running = Run(kestrel)
    running.job("build", 1)
    assert count(kestrel) == {
        "pull_request": Counted(
            buckets=buckets(success=3, failure=1, timed_out=1, cancelled=1, contradicted=1, in_progress=1),
            first_ended=7,
            first_success=3,
            timed=5,
            overrun=1,
            queued=7,
            queue_seconds=(2 + 5 + 3 + 4 + 1 + 1 + 1) * 60,
            red=3,
            # Longest queue, and from the first start to the last end; the run that still runs has none.
            runs=((1 + 10) * 60, (5 + 364 - 2) * 60),
        )
    }


def test_a_later_attempt_supersedes_its_job_and_no_other(kestrel: Repository) -> None:
    run = Run(kestrel)
    run.job("build", 1, 5)
    run.job("test", 1, 6, "failure", leg="a")
    run.job("test", 20, 30, attempt=2, leg="b")
    assert count(kestrel)["pull_request"] == Counted(
        buckets=buckets(success=2, superseded=1),
        first_ended=2,
        first_success=1,
        timed=2,
        queued=2,
        queue_seconds=120,
        red=1,
        runs=((1 + 5) * 60,),
    )


def test_red_ends_count_whatever_took_their_place_and_how_soon_an_oncall_spoke(kestrel: Repository) -> None:
    run, olga, pia = Run(kestrel), user(), user()
    first = run.job("test", 1, 6, "failure")
    run.job("test", 20, 30, attempt=2)
    second = run.job("lying", 1, 11, "contradicted")
    run.job("build", 1, 11, "cancelled")
    acknowledgement(first, olga, at=at(16))
    acknowledgement(first, pia, at=at(8) + datetime.timedelta(milliseconds=500))
    # It ended anew after the word that it is seen.
    acknowledgement(second, olga, at=at(10))
    sums = count(kestrel)["pull_request"]
    assert (sums.red, sums.acknowledged) == (2, (0, 121))
    assert sums.buckets == buckets(success=1, contradicted=1, cancelled=1, superseded=1)


def test_legs_of_one_attempt_all_count(kestrel: Repository) -> None:
    run = Run(kestrel)
    run.job("test", 1, 6, leg="a")
    run.job("test", 1, 7, "failure", leg="b")
    assert count(kestrel)["pull_request"].buckets == buckets(success=1, failure=1)


def current_by_hand(legs: list[tuple[int, int, bool]]) -> set[int]:
    """The definition a second time: attempt by attempt, n legs take n standing ones away. Legs are (id, attempt,
    whether it succeeded)."""
    standing: list[tuple[int, int, bool]] = []
    for _, group in itertools.groupby(sorted(legs, key=lambda leg: (leg[1], leg[0])), key=lambda leg: leg[1]):
        arriving = list(group)
        by_turn = sorted(standing, key=lambda leg: (leg[2], leg[1], leg[0]))
        standing = [leg for leg in standing if leg not in by_turn[: len(arriving)]] + arriving
    return {leg[0] for leg in standing}


def test_n_legs_of_an_attempt_supersede_n_earlier_ones_those_without_success_first(kestrel: Repository) -> None:
    """Every history of up to four attempts of up to three legs each, drawn at random."""
    draw = random.Random(7)
    expected, days = set(), 0
    for _ in range(120):
        run, legs = Run(kestrel), []
        for attempt in sorted(draw.sample(range(1, 6), draw.randint(1, 4))):
            for leg in range(draw.randint(1, 3)):
                bucket = draw.choice(["success", "success", "failure", "cancelled", "timed_out"])
                job = run.job("test", 1, 5, bucket, attempt=attempt, leg=f"{attempt}-{leg}")
                legs.append((job.pk, attempt, bucket == "success"))
        expected |= current_by_hand(legs)
        days += len(legs)
    shown = with_superseded(Job.objects.all())
    assert {job.pk for job in shown if not job.is_superseded} == expected  # type: ignore[attr-defined]
    sums = count(kestrel)["pull_request"].buckets
    assert (sums["superseded"], sum(sums.values())) == (days - len(expected), days)


def test_an_end_that_the_hub_inferred_has_no_run_time(kestrel: Repository) -> None:
    run = Run(kestrel)
    run.job("build", 1, 11)
    job = run.job("hung", 1, 361, "timed_out")
    Job.objects.filter(pk=job.pk).update(flags=["inferred"])
    sums = count(kestrel)["pull_request"]
    assert (sums.buckets, sums.timed, sums.runs) == (buckets(success=1, timed_out=1), 1, ())
    job.refresh_from_db()
    assert job.execution_seconds is None


def test_what_is_held_counts_nowhere_and_supersedes_nothing(kestrel: Repository) -> None:
    run = Run(kestrel)
    run.job("build", 1, 5)
    run.job("test", 2, 6, "failure")
    expected = count(kestrel)
    held = [
        run.job("test", 20, 30, attempt=2),
        run.job("lint", 0.5, 300, "timed_out"),
        Run(kestrel).job("build", 1, 2),
        Run(kestrel, event="nightly").job("build", None, 5, "failure"),
    ]
    Job.objects.filter(pk__in=[job.pk for job in held]).update(flags=["held"])
    assert count(kestrel) == expected
    Job.objects.update(flags=[])
    assert {scope: sums.buckets for scope, sums in count(kestrel).items()} == {
        "pull_request": buckets(success=3, timed_out=1, superseded=1),
        "nightly": buckets(failure=1),
    }


def test_an_answer_from_inside_the_dispatch_queued_for_no_time(kestrel: Repository) -> None:
    Run(kestrel, sent_at=at(3)).job("build", 1, 5)
    Run(kestrel, sent_at=None).job("build", 1, 5)
    found = count(kestrel)["pull_request"]
    assert (found.queued, found.queue_seconds, found.runs) == (1, 0, (240, 240))


def test_scopes_are_counted_apart(kestrel: Repository) -> None:
    Run(kestrel).job("build", 1, 5)
    Run(kestrel, event="push").job("build", 1, 5, "failure")
    Run(kestrel, event="nightly").job("build", None, 5)
    Run(kestrel, event="periodic").job("build", None, 5, "failure")
    found = count(kestrel)
    assert {scope: sums.buckets for scope, sums in found.items()} == {
        "pull_request": buckets(success=1),
        "push": buckets(failure=1),
        "nightly": buckets(success=1, failure=1),
    }
    assert found["nightly"].runs == ()


def test_a_job_belongs_to_the_utc_day_it_was_first_seen_on(kestrel: Repository) -> None:
    run = Run(kestrel)
    run.job("build", 12 * 60 - 1, 12 * 60 + 5)
    run.job("test", 12 * 60, 12 * 60 + 9)
    today, tomorrow = count(kestrel), count(kestrel, TODAY + datetime.timedelta(days=1))
    assert today["pull_request"].buckets == buckets(success=1)
    assert tomorrow["pull_request"].buckets == buckets(success=1)
    # The run belongs to the day of its first job, whole.
    assert (len(today["pull_request"].runs), tomorrow["pull_request"].runs) == (1, ())


def test_a_run_over_many_days_is_one_run_of_its_first_day(kestrel: Repository) -> None:
    run = Run(kestrel)
    run.job("build", 1, 5)
    run.job("test", 5 * 24 * 60, 5 * 24 * 60 + 9)
    assert count(kestrel)["pull_request"].runs == ((5 * 24 * 60 + (5 * 24 * 60 + 9 - 1)) * 60,)
    assert count(kestrel, TODAY + datetime.timedelta(days=5))["pull_request"].runs == ()


def test_a_late_end_is_told_on_the_day_of_its_run(kestrel: Repository) -> None:
    run = Run(kestrel)
    run.job("build", 1, 5)
    late = run.job("package", 5 * 24 * 60)
    assert count(kestrel)["pull_request"].runs == ()
    Job.objects.filter(pk=late.pk).update(
        status="completed", conclusion="success", bucket="success", completed_at=at(5 * 24 * 60 + 2)
    )
    count(kestrel, TODAY + datetime.timedelta(days=5))
    # It queued for five days, and ended five days and a minute after the run's first start.
    assert DayFigures.objects.get(day=TODAY, scope="pull_request").runs == [2 * 5 * 24 * 3_600 + 60]


def test_a_window_adds_up_the_days_of_a_platforms_repositories() -> None:
    made = listed({"kestrel-demo/torch-kestrel": 2, "fen-demo/torch-fen": 2, "fen-demo/other": 2})
    one, other = made["fen-demo/torch-fen"], made["fen-demo/other"]
    Repository.objects.filter(pk=other.pk).update(platform=one.platform)
    for back in (0, 1, 13, 14, 29, 30):
        for repository in made.values():
            run = Run(repository)
            run.job("build", 1 - back * 24 * 60, 5 + back - back * 24 * 60)
            run.job("test", 2 - back * 24 * 60, 9 - back * 24 * 60, "failure" if back == 13 else "success")
            Run(repository, event="push").job("build", 3 - back * 24 * 60)
    # Of a day without an ended run there is nothing to put in order.
    Run(one).job("build", 4)
    services.recount(days=32, now=NOON)
    of_one = DayFigures.objects.filter(repository__in=[one, other], scope="pull_request")
    by_day = {
        back: add(counted(row) for row in of_one.filter(day=TODAY - datetime.timedelta(days=back)))
        for back in range(29, -1, -1)
    }
    found = platform_windows(scope="pull_request", today=TODAY, days=14, strip_days=30)
    assert set(found) == {one.platform_id, made["kestrel-demo/torch-kestrel"].platform_id}
    window, expected = found[one.platform_id], add(by_day[back] for back in range(14))
    assert (expected.rows, len(expected.runs)) == (13, 6)
    assert in_order(window.counted) == in_order(expected)
    assert [(day.day, day.rate) for day in window.strip] == [
        (TODAY - datetime.timedelta(days=back), pass_rate(sums)) for back, sums in by_day.items()
    ]
    assert window.today.buckets == by_day[0].buckets
    assert (window.last_callback_at, window.counted_at) == (at(9), NOON)
    alone = platform_windows(scope="pull_request", today=TODAY, days=14, strip_days=30, platform=one.platform)
    assert {pk: in_order(same.counted) for pk, same in alone.items()} == {one.platform_id: in_order(expected)}


def in_order(sums: Counted) -> Counted:
    return dataclasses.replace(sums, runs=tuple(sorted(sums.runs)), upstream_runs=tuple(sorted(sums.upstream_runs)))


def test_another_repository_is_not_counted(kestrel: Repository) -> None:
    fen = listed({"kestrel-demo/torch-kestrel": 2, "fen-demo/torch-fen": 2})["fen-demo/torch-fen"]
    Run(fen).job("build", 1, 5)
    assert count(kestrel) == {}


def test_counting_again_replaces_and_an_emptied_scope_goes(kestrel: Repository) -> None:
    job = Run(kestrel).job("build", 1, 5)
    Run(kestrel, event="push").job("build", 1, 5)
    count(kestrel)
    job.delete()
    assert {scope: sums.rows for scope, sums in count(kestrel).items()} == {"pull_request": 0, "push": 1}
    Dispatch.objects.filter(delivery__delivery_id=job.delivery_id).delete()
    assert set(count(kestrel)) == {"push"}


def test_recount_finds_the_days_that_have_jobs(kestrel: Repository) -> None:
    Run(kestrel).job("build", 1, 5)
    Run(kestrel).job("build", -24 * 60, -24 * 60 + 5)
    Run(kestrel).job("build", -48 * 60, -48 * 60 + 5)
    assert services.recount(days=2, now=NOON) == 2
    assert sorted(DayFigures.objects.values_list("day", flat=True)) == [TODAY - datetime.timedelta(days=1), TODAY]


def test_a_jobs_own_properties_say_what_its_count_says(kestrel: Repository) -> None:
    job = Run(kestrel).job("build", 2, 12)
    assert (job.queue_seconds, job.execution_seconds) == (count(kestrel)["pull_request"].queue_seconds, 600.0)


def test_a_callback_leaves_a_wakeup_for_its_day(
    kestrel: Repository, client: Client, downstream: Callable[..., Any]
) -> None:
    from tests.relay.test_callback import dispatch

    made = downstream("kestrel-demo/torch-kestrel")
    dispatch(client)
    Wakeup.objects.all().delete()
    made.start()
    made.start()
    made.end()
    job = Job.objects.get()
    key = f"{kestrel.pk}:{job.first_seen_at.date()}"
    assert list(Wakeup.objects.values_list("topic", "key")) == [("job_changed", key)]
    # A later attempt changes the count of the day on which the first one was seen.
    Wakeup.objects.all().delete()
    Job.objects.update(first_seen_at=job.first_seen_at - datetime.timedelta(days=3))
    made.post(made.body(run_attempt="2"), token=made.token(run_attempt="2"))
    earlier = f"{kestrel.pk}:{job.first_seen_at.date() - datetime.timedelta(days=3)}"
    assert set(Wakeup.objects.values_list("key", flat=True)) == {key, earlier}
    tasks.count_days([key, earlier])
    assert {row.day.isoformat(): counted(row).buckets for row in DayFigures.objects.all()} == {
        key.partition(":")[2]: buckets(in_progress=1),
        earlier.partition(":")[2]: buckets(superseded=1),
    }
