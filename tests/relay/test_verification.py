"""Conclusions against GitHub's own record of the run: verified, contradicted, unverifiable."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.core.clock import now
from apps.core.github import RunJob
from apps.core.models import Wakeup
from apps.relay import lookups, tasks, verification
from apps.relay.lookups import RunKey, due_runs, look_up_run
from apps.relay.models import Job
from apps.relay.policy import LOOKUPS_MAX
from tests.factories.listing import listed
from tests.factories.pages import Page
from tests.relay.downstream import Downstream, answer
from tests.relay.test_callback import APPLIED, KESTREL, LATE, dispatch

pytestmark = pytest.mark.django_db
MINUTE = datetime.timedelta(minutes=1)


@pytest.fixture
def kestrel(downstream: Callable[..., Downstream], client: Client) -> Downstream:
    made = downstream(KESTREL)
    listed({KESTREL: 2})
    dispatch(client)
    return made


def record(made: Downstream, conclusion: str = "", *, name: str = "build", check_run: str = "456", **more: Any) -> None:
    """GitHub's own record of a job of this run."""
    made.github.record_job(
        made.full_name, run_id=made.run_id, name=name, check_run_id=check_run, conclusion=conclusion, **more
    )


def look_up(*, after: datetime.timedelta = 2 * MINUTE) -> int:
    """What the beat and its tasks do, so much later."""
    moment = now() + after
    return sum(look_up_run(run=run, now=moment) for run in due_runs(now=moment))


def look_up_one(made: Downstream) -> None:
    """GitHub has verified one job: from now on a token of the installation is kept."""
    made.end()
    record(made, "success")
    assert look_up() == 1


def asked(made: Downstream) -> int:
    return sum("/attempts/" in request.path for request in made.github.requests)


def verdicts() -> list[tuple[str, ...]]:
    return list(Job.objects.order_by("pk").values_list("verdict", "bucket", "github_said"))


def test_githubs_record_verifies_a_conclusion(kestrel: Downstream) -> None:
    kestrel.start()
    kestrel.end()
    record(kestrel, "success")
    assert look_up() == 1
    assert verdicts() == [("verified", "success", "GitHub's job “build” ended as success")]
    job = Job.objects.get()
    assert job.trust == {
        "identity": "verified",
        "timing": "self-reported",
        "conclusion": "verified",
        "counts": "self-reported",
    }
    page = Page(kestrel.client.get(f"/jobs/{job.public_id}/"))
    assert page.tables["figures"][1] == ("Conclusion", "● success", "◆ verified")
    assert page.facts["about"]["GitHub's record"].startswith(
        "GitHub says the same GitHub's job “build” ended as success"
    )
    assert (look_up(), asked(kestrel)) == (0, 1)


def test_a_token_that_github_no_longer_takes_is_replaced_once(kestrel: Downstream) -> None:
    look_up_one(kestrel)
    kestrel.end(job_name="test", check_run_id="457")
    record(kestrel, "success", name="test", check_run="457")
    kestrel.github.fail("/attempts/", status=401)
    assert look_up() == 1
    assert verdicts()[1] == ("verified", "success", "GitHub's job “test” ended as success")


def test_a_new_token_that_github_does_not_take_ends_no_question(kestrel: Downstream) -> None:
    look_up_one(kestrel)
    kestrel.end(job_name="test", check_run_id="457")
    record(kestrel, "success", name="test", check_run="457")
    kestrel.github.fail("/attempts/", status=401, times=2, message="Bad credentials")
    assert look_up() == 0
    assert verdicts()[1] == ("", "success", "GitHub answered 401: Bad credentials")
    assert look_up(after=10 * MINUTE) == 1
    assert verdicts()[1][0] == "verified"


@pytest.mark.parametrize(("reported", "recorded"), [("success", "failure"), ("success", "cancelled")])
def test_a_difference_is_contradicted_never_green_and_counted_so(
    kestrel: Downstream, reported: str, recorded: str
) -> None:
    kestrel.end(reported)
    record(kestrel, recorded)
    Wakeup.objects.all().delete()
    assert look_up() == 1
    assert verdicts() == [("contradicted", "contradicted", f"GitHub's job “build” ended as {recorded}")]
    job = Job.objects.get()
    assert job.trust["conclusion"] == "contradicted"
    key = f"{job.repository_id}:{job.first_seen_at.date()}"
    assert list(Wakeup.objects.values_list("topic", "key")) == [("job_changed", key)]
    page = Page(kestrel.client.get(f"/jobs/{job.public_id}/"))
    assert page.tables["figures"][1] == ("Conclusion", f"✕ contradicted it says {reported}", "✕ contradicted")
    assert f"The job says {reported}, GitHub's record says otherwise: it never counts as green." in page.text
    assert "● success" not in page.text


def test_nothing_is_asked_while_a_job_runs_or_before_it_is_due(kestrel: Downstream) -> None:
    kestrel.start()
    assert look_up() == 0
    kestrel.end()
    assert (look_up(after=0 * MINUTE), asked(kestrel)) == (0, 0)


def test_one_request_answers_for_every_job_of_the_run(kestrel: Downstream) -> None:
    for number in range(110):
        record(kestrel, "success", name=f"job {number}", check_run=str(number))
    for number in range(70, 110):
        kestrel.end(job_name=f"job {number}", check_run_id=str(number))
    assert look_up() == 40
    # Two pages of a hundred.
    assert (asked(kestrel), Job.objects.filter(verdict="verified").count()) == (2, 40)


def test_a_job_that_github_has_not_ended_is_asked_about_again_later(kestrel: Downstream) -> None:
    kestrel.end()
    record(kestrel)
    assert look_up() == 0
    assert verdicts() == [("", "success", "GitHub's job “build” is in progress")]
    assert (look_up(after=3 * MINUTE), asked(kestrel)) == (0, 1)
    record(kestrel, "success")
    assert look_up(after=10 * MINUTE) == 1
    assert verdicts()[0][0] == "verified"


@pytest.mark.parametrize(
    ("status", "said"), [(502, "GitHub answered 502"), (0, "GitHub did not answer: ConnectionError")]
)
def test_without_an_answer_it_is_asked_again_and_not_for_ever(kestrel: Downstream, status: int, said: str) -> None:
    kestrel.end()
    record(kestrel, "success")
    kestrel.github.fail("/attempts/", status=status, times=1_000)
    waits, waited = [], 2 * MINUTE
    for _ in range(LOOKUPS_MAX):
        assert verdicts()[0][:2] == ("", "success")
        look_up(after=waited)
        due = Job.objects.values_list("look_up_at", flat=True).get()
        waits.append(None if due is None else round((due - now() - waited) / MINUTE))
        waited = 2 * waited + 2 * MINUTE
    assert waits == [2, 4, 8, 16, 32, 64, 128, None]
    assert verdicts() == [("unverifiable", "success", said)]
    assert Job.objects.get().trust["conclusion"] == "self-reported"
    assert (look_up(after=waited), asked(kestrel)) == (0, LOOKUPS_MAX)


def test_what_github_refuses_or_does_not_know_is_unverifiable_with_the_reason(kestrel: Downstream) -> None:
    kestrel.end()
    assert look_up() == 1
    assert verdicts() == [("unverifiable", "success", "GitHub answered 404: Not Found")]
    page = Page(kestrel.client.get(f"/jobs/{Job.objects.get().public_id}/"))
    assert page.facts["about"]["GitHub's record"].startswith("GitHub cannot say GitHub answered 404: Not Found")
    assert page.tables["figures"][1][2] == "○ self-reported"


def test_a_job_that_changes_while_github_is_asked_is_judged_the_next_time(
    kestrel: Downstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    kestrel.end()
    record(kestrel, "failure")
    real = lookups._records_of

    def slow(run: RunKey) -> Any:
        assert answer(kestrel.start()) == LATE
        return real(run)

    monkeypatch.setattr(lookups, "_records_of", slow)
    assert look_up() == 0
    monkeypatch.undo()
    assert verdicts()[0][:2] == ("", "success")
    assert look_up(after=10 * MINUTE) == 1
    assert verdicts()[0][:2] == ("contradicted", "contradicted")
    assert Job.objects.get().flags == ["late_start"]


def test_a_verdict_stands_against_later_callbacks(kestrel: Downstream) -> None:
    kestrel.end()
    record(kestrel, "failure")
    look_up()
    kestrel.start()
    assert kestrel.end("failure").status_code == 409
    assert verdicts()[0][:2] == ("contradicted", "contradicted")


def test_a_success_that_its_own_counts_contradict_stays_so_whatever_github_says(kestrel: Downstream) -> None:
    kestrel.end(test_results={"passed": 1, "failed": 1, "skipped": 0})
    record(kestrel, "success")
    look_up()
    assert verdicts()[0][:2] == ("verified", "contradicted")
    assert Job.objects.get().trust["conclusion"] == "contradicted"


def test_what_a_verdict_says_about_a_nightly(kestrel: Downstream) -> None:
    body = kestrel.body("f" * 40, conclusion="success") | {"event_type": "nightly"}
    assert answer(kestrel.post(body)) == APPLIED
    record(kestrel, "success")
    assert look_up() == 1
    assert verdicts()[0][0] == "verified"


@pytest.mark.parametrize(
    ("records", "verdict", "said"),
    [
        ([RunJob("456", "other", "completed", "success")], "verified", "GitHub's job “other” ended as success"),
        ([RunJob("9", "build", "completed", "success")], "verified", "GitHub's job “build” ended as success"),
        (
            [RunJob("9", "build", "completed", "failure"), RunJob("456", "x", "completed", "success")],
            "verified",
            "GitHub's job “x” ended as success",
        ),
        (
            [RunJob("8", "build", "completed", "success"), RunJob("9", "build", "completed", "success")],
            "unverifiable",
            "GitHub lists 2 jobs of this name in the run, and none of this check run",
        ),
        ([], "unverifiable", "GitHub lists 0 jobs in the run, and none of this check run or name"),
        ([RunJob("456", "build", "queued", "")], None, "GitHub's job “build” is queued"),
        (
            [RunJob("456", "y" * 300, "completed", "timed_out")],
            "contradicted",
            f"GitHub's job “{'y' * 99}…” ended as timed_out",
        ),
    ],
)
def test_which_record_speaks_for_a_job(records: list[RunJob], verdict: str | None, said: str) -> None:
    found = verification.finding_of(records, conclusion="success", check_run_id="456", job_name="build")
    assert (found.verdict, found.said) == (verdict, said)


def test_the_tasks_do_the_same(kestrel: Downstream, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kestrel.end()
    record(kestrel, "success")
    Job.objects.update(look_up_at=now() - MINUTE)
    handed: list[tuple[Any, ...]] = []
    monkeypatch.setattr(tasks.look_up_run, "delay", lambda *args: handed.append(args))
    assert tasks.look_up_due_runs() == 1
    assert [tasks.look_up_run(*args) for args in handed] == [1]
    assert verdicts()[0][0] == "verified"
