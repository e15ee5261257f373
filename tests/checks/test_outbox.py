"""Check runs on their way: what GitHub does not take, workers that die, changes that overtake."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import override_settings

from apps.checks import outbox, services, tasks
from apps.checks.enums import SendState
from apps.checks.models import Check
from apps.core import wakeups
from apps.core.backoff import ASKED_WAIT_MAX_SECONDS, ATTEMPTS_MAX, BACKOFF_SECONDS, backoff_seconds
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.core.outbox import LOST, SENDING_LOST_SECONDS
from apps.relay.adoption_selectors import holder
from apps.relay.models import Job, SeenCheck
from apps.simulator.standin import GitHubStandIn
from tests.checks.field import BUILD, Upstream, seconds_later, settle, shown
from tests.relay.downstream import HEAD_SHA, Downstream

pytestmark = pytest.mark.django_db
AtLevel = Callable[[int], Downstream]


@pytest.fixture
def check(upstream: Upstream, at_level: AtLevel, github: GitHubStandIn) -> Check:
    """One check run, in progress, not sent yet."""
    kestrel = at_level(4)
    upstream.tells("opened")
    kestrel.post(kestrel.body(upstream.last_delivery))
    wakeups.drain()
    return Check.objects.get()


def send(check: Check, at: datetime.datetime | None = None) -> SendState | None:
    return services.send_check(check_pk=check.pk, now=at or now())


def row(check: Check) -> tuple[Any, ...]:
    check.refresh_from_db()
    return check.state, check.attempts, check.error, check.sent_revision


def ends(check: Check, conclusion: str = "failure") -> None:
    """The job behind it ends, and the hub looks at it."""
    Job.objects.update(
        status="completed", conclusion=conclusion, bucket=conclusion, completed_at=now(), start_seen_at=now()
    )
    services.look_at_jobs([Job.objects.get().pk], now=now())


@pytest.mark.parametrize("status", [500, 502, 503, 429, 0])
def test_what_github_did_not_take_waits_for_its_time(check: Check, github: GitHubStandIn, status: int) -> None:
    github.fail("/check-runs$", status=status)
    assert send(check) is SendState.PENDING
    assert row(check)[0::3] == ("pending", 0)
    assert check.next_attempt_at <= seconds_later(BACKOFF_SECONDS[0] + 60)
    assert send(check, at=check.next_attempt_at - datetime.timedelta(microseconds=1)) is None
    assert send(check, at=check.next_attempt_at) is SendState.SENT
    assert row(check) == ("sent", 2, "", 1)
    assert len(github.check_runs) == 1


def test_after_enough_attempts_it_is_given_up_with_the_reason(check: Check, github: GitHubStandIn) -> None:
    github.fail("/check-runs", status=503, times=100)
    later = seconds_later(100_000)
    states = [send(check, at=later) for _ in range(ATTEMPTS_MAX + 1)]
    assert states == [SendState.PENDING] * (ATTEMPTS_MAX - 1) + [SendState.GIVEN_UP, None]
    assert row(check) == ("given_up", ATTEMPTS_MAX, "GitHub answered 503", 0)


def test_a_token_that_github_no_longer_takes_is_replaced_once(check: Check, github: GitHubStandIn) -> None:
    send(check)
    github.fail("/check-runs", status=401)
    ends(check)
    assert send(check) is SendState.SENT
    assert shown(github) == [(BUILD, "failure", "Failed")]


def test_a_new_token_that_github_does_not_take_is_no_answer(check: Check, github: GitHubStandIn) -> None:
    """It says nothing about the check run: that waits, and is not given up."""
    send(check)
    github.fail("/check-runs", status=401, times=2, message="Bad credentials")
    ends(check)
    assert send(check) is SendState.PENDING
    assert row(check) == ("pending", 1, "GitHub answered 401: Bad credentials", 1)
    assert send(check, at=check.next_attempt_at) is SendState.SENT


def test_words_that_postgresql_cannot_store_do_not_stop_it(check: Check) -> None:
    taken = outbox.take(Check, check.pk, now=now())
    assert taken is not None
    words = "GitHub answered 422: \0 \ud800" + "x" * 600
    assert outbox.finish(taken, now=now(), error=words, state=SendState.GIVEN_UP)
    assert row(check) == ("given_up", 1, ("GitHub answered 422: \ufffd \ufffd" + "x" * 600)[:500], 0)


def test_what_github_refuses_is_given_up_at_once_until_it_says_something_new(
    check: Check, github: GitHubStandIn
) -> None:
    github.fail("/check-runs$", status=422, message="No commit found for SHA")
    assert send(check) is SendState.GIVEN_UP
    assert row(check) == ("given_up", 1, "GitHub answered 422: No commit found for SHA", 0)
    ends(check)
    assert send(check) is SendState.SENT
    assert shown(github) == [(BUILD, "failure", "Failed")]


def test_a_sent_one_is_not_sent_again(check: Check, github: GitHubStandIn) -> None:
    assert (send(check), send(check)) == (SendState.SENT, None)
    services.look_at_jobs([Job.objects.get().pk], now=now())
    assert send(check) is None
    assert len(github.check_runs) == 1


def test_without_an_app_nothing_is_published_and_everything_waits(check: Check) -> None:
    with override_settings(GITHUB_APP_ID=""):
        assert send(check) is None
    assert row(check) == ("pending", 0, "", 0)
    assert send(check) is SendState.SENT


@pytest.mark.parametrize("mode", ["observer", "shadow"])
def test_a_mode_that_publishes_nothing_lets_everything_wait(check: Check, github: GitHubStandIn, mode: str) -> None:
    with override_settings(MODE=mode):
        assert send(check) is None
    assert (row(check), github.check_runs) == (("pending", 0, "", 0), [])


@pytest.mark.parametrize(
    ("sha", "minutes"),
    [("cd" * 20, 120), (HEAD_SHA, 10)],  # elsewhere: until it is old; on the commit: until the next look
)
def test_a_name_that_another_app_holds_waits_until_it_is_free(
    check: Check, github: GitHubStandIn, caplog: pytest.LogCaptureFixture, sha: str, minutes: int
) -> None:
    begun = now()
    seen = SeenCheck.objects.create(
        sha=sha, name=BUILD, app_id=99, app_name="relay", github_id=1, status="in_progress", started_at=begun
    )
    assert send(check) is SendState.PENDING
    error = (
        "the App relay (99) publishes it too. Stop it there, or set ACCELHUB_CHECK_PREFIX. This one waits and goes by "
        "itself: 2 hours after that App's last one, on a commit that shows one once it is gone."
    )
    assert (row(check), github.check_runs) == (("pending", 0, error, 0), [])
    assert round((check.next_attempt_at - begun).total_seconds() / 60) == minutes
    assert send(check, at=check.next_attempt_at - datetime.timedelta(seconds=1)) is None
    assert caplog.text.count(f"check {BUILD} is not published: {error}") == 1
    if sha == HEAD_SHA:
        again = check.next_attempt_at
        assert send(check, at=again) is SendState.PENDING
        assert caplog.text.count("is not published") == 1
        row(check)
        assert check.next_attempt_at == again + datetime.timedelta(minutes=10)
        seen.delete()
    assert send(check, at=check.next_attempt_at) is SendState.SENT
    assert (row(check), len(github.check_runs)) == (("sent", 1, "", 1), 1)


def test_an_app_that_is_set_up_by_its_client_id_holds_its_own_names_for_nobody(check: Check) -> None:
    SeenCheck.objects.create(
        sha="cd" * 20, name=BUILD, app_id=9, app_client_id="Iv1.ours", github_id=1, status="queued", started_at=now()
    )
    held = holder(BUILD, check.head_sha, now=now())
    assert held is not None
    assert held.app == " (9)"
    with override_settings(GITHUB_APP_ID="Iv1.ours"):
        assert holder(BUILD, check.head_sha, now=now()) is None


@pytest.mark.parametrize("state", [SendState.GIVEN_UP, SendState.PENDING])
def test_what_changes_while_it_is_refused_is_sent_after_that(
    check: Check, github: GitHubStandIn, state: SendState
) -> None:
    """The refusal is of what it said before. One that waits goes on waiting."""
    send(check)
    Check.objects.update(state="pending", revision=2, title="Running again")
    taken = outbox.take(Check, check.pk, now=now())
    assert taken is not None
    ends(check)
    wait = seconds_later(60)
    assert services._end(taken, state=state, error="GitHub answered 422: no", next_attempt_at=wait) is SendState.PENDING
    is_due = state is SendState.GIVEN_UP
    assert row(check) == ("pending", 0 if is_due else 2, "GitHub answered 422: no", 1)
    assert (check.next_attempt_at < wait) is is_due
    assert send(check, at=wait) is SendState.SENT
    assert (row(check), shown(github)) == (("sent", check.attempts, "", 3), [(BUILD, "failure", "Failed")])


def test_what_changes_while_it_is_sent_is_sent_after_that(check: Check, github: GitHubStandIn) -> None:
    """The end comes while the start is on its way: neither is lost, and the end is last."""
    taken = outbox.take(Check, check.pk, now=now())
    assert taken is not None
    ends(check)
    assert send(check) is None  # one sender at a time
    sent = services._sent(taken, services._publish(taken, now()))
    assert (sent, row(check)) == (SendState.PENDING, ("pending", 0, "", 1))
    assert shown(github) == [(BUILD, "in_progress", "Running")]
    settle()
    assert (shown(github), row(check)) == ([(BUILD, "failure", "Failed")], ("sent", 1, "", 2))


def test_a_worker_that_died_after_github_answered_leaves_no_second_check_run(
    check: Check, github: GitHubStandIn
) -> None:
    taken = outbox.take(Check, check.pk, now=now())
    assert taken is not None
    made = services._publish(taken, now())
    later = seconds_later(SENDING_LOST_SECONDS + 1)
    assert outbox.sweep(Check, "check_pending", now=later) == 1
    assert row(check) == ("pending", 1, LOST, 0)
    assert send(check, at=later) is SendState.SENT
    assert [run["id"] for run in github.check_runs] == [made]
    assert Check.objects.get().github_id == made


def test_an_attempt_that_ends_after_it_was_taken_back_overwrites_nothing(check: Check) -> None:
    taken = outbox.take(Check, check.pk, now=now())
    assert taken is not None
    outbox.sweep(Check, "check_pending", now=seconds_later(SENDING_LOST_SECONDS + 1))
    assert services._sent(taken, 7) is None
    assert row(check) == ("pending", 1, LOST, 0)


def test_one_that_kills_its_worker_each_time_is_given_up_too(check: Check) -> None:
    Check.objects.update(state="pending", attempts=ATTEMPTS_MAX - 1)
    assert outbox.take(Check, check.pk, now=now()) is not None
    assert outbox.sweep(Check, "check_pending", now=seconds_later(SENDING_LOST_SECONDS + 1)) == 0
    assert row(check) == ("given_up", ATTEMPTS_MAX, LOST, 0)


def test_what_changes_while_the_last_attempt_loses_its_worker_is_sent_after_that(
    check: Check, github: GitHubStandIn
) -> None:
    """The start was tried often enough; the end was never tried, and a started check run would block its commit."""
    Check.objects.update(state="pending", attempts=ATTEMPTS_MAX - 1)
    taken = outbox.take(Check, check.pk, now=now())
    assert taken is not None
    made = services._publish(taken, now())
    ends(check)
    later = seconds_later(SENDING_LOST_SECONDS + 1)
    assert outbox.sweep(Check, "check_pending", now=later) == 1
    assert row(check) == ("pending", 0, LOST, 0)
    assert send(check, at=later) is SendState.SENT
    assert (row(check), shown(github)) == (("sent", 1, "", 2), [(BUILD, "failure", "Failed")])
    assert [run["id"] for run in github.check_runs] == [made]


def test_the_sweep_wakes_what_lost_its_task(check: Check, github: GitHubStandIn) -> None:
    Wakeup.objects.all().delete()
    assert tasks.sweep_checks() == 1
    assert list(Wakeup.objects.values_list("topic", "key")) == [("check_pending", str(check.pk))]
    settle()
    assert (tasks.sweep_checks(), shown(github)) == (0, [(BUILD, "in_progress", "Running")])


def test_postgresql_keeps_one_of_a_name_at_a_commit(check: Check) -> None:
    with pytest.raises(IntegrityError, match="checks_check_once"), transaction.atomic():
        Check.objects.create(
            repository=check.repository, head_sha=check.head_sha, name=check.name, pr_number=1, status="in_progress",
            title="", summary="", created_at=now(), next_attempt_at=now(), changed_at=now(),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "constraint"),
    [
        ({"state": "lost"}, "checks_check_state"),
        ({"status": "completed"}, "checks_check_end_whole"),
        ({"status": "completed", "conclusion": "green"}, "checks_check_conclusion"),
        ({"github_id": 5}, "checks_check_sent_whole"),
        ({"state": "sent"}, "checks_check_sent_is_wanted"),
    ],
)
def test_postgresql_refuses_halves(check: Check, values: dict[str, Any], constraint: str) -> None:
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        Check.objects.update(**values)


def test_waits_grow_fourfold_up_to_an_hour_and_end() -> None:
    assert [backoff_seconds(attempt, 0.5) for attempt in range(1, ATTEMPTS_MAX + 1)] == [
        *(2.5, 10, 40, 160, 640, 1_800),
        None,
    ]
    assert backoff_seconds(1, 0.0) == 0


def test_a_wait_that_github_asks_for_is_kept_up_to_a_bound() -> None:
    assert backoff_seconds(1, 0.5, asked=30) == 32.5
    assert backoff_seconds(1, 0.0, asked=1e12) == ASKED_WAIT_MAX_SECONDS
