"""From a stored delivery to GitHub's repository_dispatch: sending, failing, sweeping."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client, override_settings

from apps.core import github as core_github
from apps.core.backoff import ATTEMPTS_MAX, BACKOFF_SECONDS
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.core.outbox import SENDING_LOST_SECONDS
from apps.relay import outbox, provenance, services
from apps.relay.enums import DispatchState, Provenance
from apps.relay.models import Delivery, Dispatch
from apps.simulator.standin import GitHubStandIn, Kind
from tests.factories.listing import listed
from tests.relay.downstream import PAYLOAD, Downstream, send_webhook

pytestmark = pytest.mark.django_db
KESTREL = "kestrel-demo/torch-kestrel"


@pytest.fixture
def dispatch(downstream: Callable[..., Downstream], client: Client) -> Dispatch:
    """One pending dispatch to one repository."""
    downstream(KESTREL)
    listed({KESTREL: 1})
    send_webhook(client, PAYLOAD)
    services.fan_out(delivery_pk=Delivery.objects.get().pk, now=now())
    return Dispatch.objects.get()


def send(dispatch: Dispatch, *, after: float = 0, chance: float = 0.5) -> DispatchState | None:
    """Send it, `after` seconds from now."""
    moment = now() + datetime.timedelta(seconds=after)
    return outbox.send_dispatch(dispatch_pk=dispatch.pk, now=moment, chance=chance)


def row(dispatch: Dispatch) -> tuple[Any, ...]:
    dispatch.refresh_from_db()
    return dispatch.state, dispatch.attempts, dispatch.error, dispatch.sent_at is not None


def waits(dispatch: Dispatch) -> float | None:
    """How many seconds after it failed it is tried again."""
    dispatch.refresh_from_db()
    at = dispatch.next_attempt_at
    return None if at is None else (at - dispatch.changed_at).total_seconds()


def test_github_gets_event_delivery_and_the_webhooks_body(dispatch: Dispatch, github: GitHubStandIn) -> None:
    assert send(dispatch) is DispatchState.SENT
    assert row(dispatch) == ("sent", 1, "", True)
    posted = [r for r in github.requests if r.path.endswith("/dispatches")]
    token = posted[0].body["client_payload"].pop("dispatch_token")
    read = provenance.read(token, delivery_id="d-1", repository_id=dispatch.repository_id, now=now())
    assert read is Provenance.CONFIRMED
    assert [(r.method, r.path, r.status, r.body) for r in posted] == [
        (
            "POST",
            f"/repos/{KESTREL}/dispatches",
            204,
            {
                "event_type": "pull_request",
                "client_payload": {"event_type": "pull_request", "delivery_id": "d-1", "payload": PAYLOAD},
            },
        )
    ]


def test_a_sent_dispatch_is_never_sent_again(dispatch: Dispatch, github: GitHubStandIn) -> None:
    send(dispatch)
    assert send(dispatch) is None
    assert len(github.dispatches) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 0])
def test_what_github_did_not_take_waits_for_the_next_attempt(
    dispatch: Dispatch, github: GitHubStandIn, status: int
) -> None:
    github.fail("/dispatches$", status=status)
    assert send(dispatch, chance=0.8) is DispatchState.PENDING
    error = "GitHub did not answer: ConnectionError" if status == 0 else f"GitHub answered {status}"
    assert row(dispatch) == ("pending", 1, error, False)
    assert waits(dispatch) == 0.8 * BACKOFF_SECONDS[0]
    assert send(dispatch) is None  # not its time yet
    assert send(dispatch, after=5) is DispatchState.SENT
    assert (row(dispatch), waits(dispatch)) == (("sent", 2, "", True), None)
    assert len(github.dispatches) == 1


def test_each_wait_is_longer_and_after_the_last_it_is_given_up(dispatch: Dispatch, github: GitHubStandIn) -> None:
    github.spoil("/dispatches$", Kind.FAIL, times=None, status=503)
    waited = []
    for _ in range(ATTEMPTS_MAX):
        send(dispatch, after=7_200, chance=0.5)
        waited.append(waits(dispatch))
    assert waited == [*(seconds / 2 for seconds in BACKOFF_SECONDS), None]
    assert row(dispatch) == ("given_up", 7, "GitHub answered 503", False)
    assert send(dispatch, after=7_200) is None


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize(("kind", "slack"), [(Kind.LIMIT, 0), (Kind.EXHAUST, 1.5)])
def test_a_rate_limit_is_waited_for_as_long_as_it_says(
    dispatch: Dispatch, github: GitHubStandIn, status: int, kind: Kind, slack: float
) -> None:
    github.spoil("/dispatches$", kind, seconds=100, status=status)
    assert send(dispatch, chance=0) is DispatchState.PENDING
    assert row(dispatch) == ("pending", 1, "GitHub's rate limit is reached", False)
    assert waits(dispatch) == pytest.approx(100, abs=slack)
    assert send(dispatch, after=100 - slack - 3) is None
    assert send(dispatch, after=101 + slack) is DispatchState.SENT


def test_a_rate_limit_on_the_token_is_waited_for_too(dispatch: Dispatch, github: GitHubStandIn) -> None:
    github.spoil("/access_tokens$", Kind.LIMIT, seconds=70)
    assert (send(dispatch, chance=0), waits(dispatch)) == (DispatchState.PENDING, 70)


@pytest.mark.parametrize(
    ("status", "message"), [(403, "You have exceeded a secondary rate limit."), (429, "Too many requests")]
)
def test_a_rate_limit_without_a_time_is_a_minute(
    dispatch: Dispatch, github: GitHubStandIn, status: int, message: str
) -> None:
    github.fail("/dispatches$", status=status, message=message)
    assert (send(dispatch, chance=0), waits(dispatch)) == (DispatchState.PENDING, 60)


def test_an_absurd_wait_is_capped(dispatch: Dispatch, github: GitHubStandIn) -> None:
    github.spoil("/dispatches$", Kind.LIMIT, seconds=999_999_999)
    assert (send(dispatch, chance=0.2), waits(dispatch)) == (DispatchState.PENDING, 3_601)


def test_where_the_app_is_not_installed_it_is_given_up_with_what_to_do(
    dispatch: Dispatch, github: GitHubStandIn
) -> None:
    github.add_repository(KESTREL, installed=False)
    assert send(dispatch) is DispatchState.GIVEN_UP
    words = (
        f"GitHub answered 404: the hub's GitHub App is not installed on {KESTREL}, or there is no such repository. "
        "Its owner installs the App with access to it; then send again."
    )
    assert row(dispatch) == ("given_up", 1, words, False)


def test_where_the_app_was_removed_since_the_last_one_it_says_so_too(
    dispatch: Dispatch, github: GitHubStandIn, client: Client
) -> None:
    send(dispatch)
    github.add_repository(KESTREL, installed=False)
    second = another(client)
    assert send(second) is DispatchState.GIVEN_UP
    assert row(second)[2].startswith(f"GitHub answered 404: the hub's GitHub App is not installed on {KESTREL}")


def test_what_github_refuses_is_given_up_at_once(dispatch: Dispatch, github: GitHubStandIn) -> None:
    github.fail("/dispatches$", status=422, message="Invalid request.")
    assert send(dispatch) is DispatchState.GIVEN_UP
    assert row(dispatch) == ("given_up", 1, "GitHub answered 422: Invalid request.", False)


def test_a_repository_that_was_unlisted_meanwhile_is_not_sent_anything(
    dispatch: Dispatch, github: GitHubStandIn
) -> None:
    listed({KESTREL: 0})
    assert send(dispatch) is None
    assert row(dispatch) == ("given_up", 0, outbox.UNLISTED_MEANWHILE, False)
    assert github.dispatches == []


def test_the_sweep_wakes_what_lost_its_task(dispatch: Dispatch, client: Client) -> None:
    send_webhook(client, PAYLOAD, delivery_id="d-2")
    Wakeup.objects.all().delete()
    assert outbox.sweep(now=now()) == 0
    later = now() + datetime.timedelta(seconds=outbox.TASK_LOST_SECONDS + 1)
    assert outbox.sweep(now=later) == 2
    assert list(Wakeup.objects.order_by("topic").values_list("topic", "key")) == [
        ("delivery_received", str(Delivery.objects.get(delivery_id="d-2").pk)),
        ("dispatch_pending", str(dispatch.pk)),
    ]
    Delivery.objects.update(state="fanned_out")
    assert outbox.sweep(now=later + datetime.timedelta(seconds=5)) == 0  # woken: a task has its time to come


def test_the_sweep_adds_to_a_long_queue_only_as_it_gets_shorter(dispatch: Dispatch) -> None:
    """A queue that is behind has lost no task: waking all that wait in it every time would only make it longer."""
    many = outbox.IN_HAND_MAX + 20
    events = [Delivery(delivery_id=f"q-{n}", event="push", state="fanned_out", received_at=now()) for n in range(many)]
    waits = {"repository": dispatch.repository, "state": "pending", "created_at": now(), "changed_at": now()}
    Delivery.objects.bulk_create(events)
    Dispatch.objects.bulk_create(Dispatch(delivery=event, next_attempt_at=now(), **waits) for event in events)
    Wakeup.objects.all().delete()
    later = now() + datetime.timedelta(seconds=outbox.TASK_LOST_SECONDS + 1)
    woken = [outbox.sweep(now=later), outbox.sweep(now=later)]
    done = Dispatch.objects.filter(woken_at=later).order_by("pk").values_list("pk", flat=True)[:5]
    Dispatch.objects.filter(pk__in=list(done)).update(state="sent", sent_at=later, next_attempt_at=None)
    assert [*woken, outbox.sweep(now=later), Wakeup.objects.count()] == [
        outbox.IN_HAND_MAX,
        0,
        5,
        outbox.IN_HAND_MAX + 5,
    ]


def test_the_sweep_wakes_what_is_due_again_and_no_sooner(dispatch: Dispatch, github: GitHubStandIn) -> None:
    github.fail("/dispatches$")
    send(dispatch, chance=0.8)
    Wakeup.objects.all().delete()
    assert outbox.sweep(now=now() + datetime.timedelta(seconds=3)) == 0
    assert outbox.sweep(now=now() + datetime.timedelta(seconds=5)) == 1
    assert list(Wakeup.objects.values_list("topic", "key")) == [("dispatch_pending", str(dispatch.pk))]


def test_the_sweep_takes_back_what_died_while_it_was_sent(dispatch: Dispatch) -> None:
    Dispatch.objects.update(state="sending", attempts=1, next_attempt_at=None)
    soon = now() + datetime.timedelta(seconds=SENDING_LOST_SECONDS - 1)
    assert (outbox.sweep(now=soon), row(dispatch)[0]) == (0, "sending")
    later = soon + datetime.timedelta(seconds=2)
    assert outbox.sweep(now=later) == 1
    assert row(dispatch) == ("pending", 1, "the worker was lost while sending", False)
    assert send(dispatch, after=SENDING_LOST_SECONDS + 5) is DispatchState.SENT


def test_an_attempt_that_ends_after_it_was_taken_back_does_not_overwrite(dispatch: Dispatch) -> None:
    Dispatch.objects.update(state="pending", attempts=1)
    outbox.finish_dispatch(dispatch_pk=dispatch.pk, attempt=1, state=DispatchState.SENT, error="", now=now())
    assert row(dispatch)[0] == "pending"


def test_an_old_attempt_does_not_finish_a_newer_one(dispatch: Dispatch) -> None:
    Dispatch.objects.update(state="sending", attempts=2, next_attempt_at=None)
    outbox.finish_dispatch(dispatch_pk=dispatch.pk, attempt=1, state=DispatchState.GIVEN_UP, error="", now=now())
    assert row(dispatch)[0] == "sending"


def test_a_dispatch_that_kills_its_worker_each_time_is_given_up_too(dispatch: Dispatch) -> None:
    Dispatch.objects.update(state="sending", attempts=ATTEMPTS_MAX, next_attempt_at=None)
    outbox.sweep(now=now() + datetime.timedelta(seconds=SENDING_LOST_SECONDS + 1))
    assert row(dispatch) == ("given_up", 7, "the worker was lost while sending", False)


def test_a_key_that_cannot_be_read_is_an_attempt_like_any_other(dispatch: Dispatch) -> None:
    core_github.client.cache_clear()
    with override_settings(GITHUB_APP_PRIVATE_KEY="no key"):
        assert send(dispatch) is DispatchState.PENDING
    core_github.client.cache_clear()
    assert row(dispatch)[:2] == ("pending", 1)
    assert row(dispatch)[2].startswith("GitHub could not be asked: ")


def another(client: Client, delivery_id: str = "d-2", **payload: Any) -> Dispatch:
    """The dispatch of another delivery."""
    send_webhook(client, PAYLOAD | payload, delivery_id=delivery_id)
    services.fan_out(delivery_pk=Delivery.objects.get(delivery_id=delivery_id).pk, now=now())
    return Dispatch.objects.get(delivery__delivery_id=delivery_id)


def test_an_app_that_was_installed_anew_is_found(dispatch: Dispatch, github: GitHubStandIn, client: Client) -> None:
    send(dispatch)
    github.fail("/dispatches$", status=401)
    assert send(another(client)) is DispatchState.SENT
    assert [r.path for r in github.requests].count(f"/repos/{KESTREL}/installation") == 2


def test_a_new_token_that_is_refused_is_not_replaced_again(dispatch: Dispatch, github: GitHubStandIn) -> None:
    github.fail("/dispatches$", status=401, times=2)
    assert send(dispatch) is DispatchState.PENDING
    assert [r.path for r in github.requests].count(f"/repos/{KESTREL}/dispatches") == 1


def test_an_answer_to_a_dispatch_that_is_still_being_sent_is_accepted(
    dispatch: Dispatch, github: GitHubStandIn, client: Client
) -> None:
    Dispatch.objects.update(state="sending", attempts=1, next_attempt_at=None)
    assert Downstream(KESTREL, github, client, "5").start().status_code == 200


def test_github_sees_one_token_for_many_dispatches(dispatch: Dispatch, github: GitHubStandIn, client: Client) -> None:
    send(dispatch)
    assert send(another(client)) is DispatchState.SENT
    installation = github.requests[1].path.split("/")[3]
    assert [(r.method, r.path) for r in github.requests] == [
        ("GET", f"/repos/{KESTREL}/installation"),
        ("POST", f"/app/installations/{installation}/access_tokens"),
        ("POST", f"/repos/{KESTREL}/dispatches"),
        ("POST", f"/repos/{KESTREL}/dispatches"),
    ]
