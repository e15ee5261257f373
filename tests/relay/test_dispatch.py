"""From a stored delivery to GitHub's repository_dispatch: sending, failing, sweeping."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client, override_settings

from apps.core import github as core_github
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.relay import provenance, services
from apps.relay.enums import DispatchState, Provenance
from apps.relay.models import Delivery, Dispatch
from apps.simulator.standin import GitHubStandIn
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


def send(dispatch: Dispatch) -> DispatchState | None:
    return services.send_dispatch(dispatch_pk=dispatch.pk, now=now())


def row(dispatch: Dispatch) -> tuple[Any, ...]:
    dispatch.refresh_from_db()
    return dispatch.state, dispatch.attempts, dispatch.error, dispatch.sent_at is not None


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


@pytest.mark.parametrize("status", [500, 502, 503, 429, 0])
def test_what_github_did_not_take_waits_for_the_next_attempt(
    dispatch: Dispatch, github: GitHubStandIn, status: int
) -> None:
    github.fail("/dispatches$", status=status)
    assert send(dispatch) is DispatchState.PENDING
    error = "GitHub did not answer: ConnectionError" if status == 0 else f"GitHub answered {status}"
    assert row(dispatch) == ("pending", 1, error, False)
    assert send(dispatch) is DispatchState.SENT
    assert row(dispatch) == ("sent", 2, "", True)
    assert len(github.dispatches) == 1


def test_a_rate_limit_is_waited_for(dispatch: Dispatch, github: GitHubStandIn) -> None:
    github.fail("/dispatches$", status=403, message="You have exceeded a secondary rate limit.")
    assert send(dispatch) is DispatchState.PENDING
    assert row(dispatch) == ("pending", 1, "GitHub's rate limit is reached", False)


def test_after_enough_attempts_it_is_given_up_with_the_reason(dispatch: Dispatch, github: GitHubStandIn) -> None:
    github.fail("/dispatches$", status=503, times=100)
    states = [send(dispatch) for _ in range(services.ATTEMPTS_MAX + 1)]
    assert states == [DispatchState.PENDING] * 4 + [DispatchState.GIVEN_UP, None]
    assert row(dispatch) == ("given_up", 5, "GitHub answered 503", False)


def test_what_github_refuses_is_given_up_at_once(dispatch: Dispatch, github: GitHubStandIn) -> None:
    github.add_repository(KESTREL, installed=False)
    assert send(dispatch) is DispatchState.GIVEN_UP
    assert row(dispatch) == ("given_up", 1, "GitHub answered 404: Not Found", False)


def test_the_sweep_wakes_what_lost_its_task(dispatch: Dispatch, client: Client) -> None:
    send_webhook(client, PAYLOAD, delivery_id="d-2")
    Wakeup.objects.all().delete()
    assert services.sweep(now=now()) == 0
    later = now() + datetime.timedelta(seconds=services.RETRY_AFTER_SECONDS + 1)
    assert services.sweep(now=later) == 2
    assert list(Wakeup.objects.order_by("topic").values_list("topic", "key")) == [
        ("delivery_received", str(Delivery.objects.get(delivery_id="d-2").pk)),
        ("dispatch_pending", str(dispatch.pk)),
    ]


def test_the_sweep_takes_back_what_died_while_it_was_sent(dispatch: Dispatch) -> None:
    Dispatch.objects.update(state="sending", attempts=1)
    soon = now() + datetime.timedelta(seconds=services.SENDING_LOST_SECONDS - 1)
    assert (services.sweep(now=soon), row(dispatch)[0]) == (0, "sending")
    later = soon + datetime.timedelta(seconds=2)
    assert services.sweep(now=later) == 1
    assert row(dispatch) == ("pending", 1, "the worker was lost while sending", False)


def test_an_attempt_that_ends_after_it_was_taken_back_does_not_overwrite(dispatch: Dispatch) -> None:
    Dispatch.objects.update(state="pending", attempts=1)
    services.finish_dispatch(dispatch_pk=dispatch.pk, attempt=1, state=DispatchState.SENT, error="", now=now())
    assert row(dispatch)[0] == "pending"


def test_an_old_attempt_does_not_finish_a_newer_one(dispatch: Dispatch) -> None:
    Dispatch.objects.update(state="sending", attempts=2)
    services.finish_dispatch(dispatch_pk=dispatch.pk, attempt=1, state=DispatchState.GIVEN_UP, error="", now=now())
    assert row(dispatch)[0] == "sending"


def test_a_dispatch_that_kills_its_worker_each_time_is_given_up_too(dispatch: Dispatch) -> None:
    Dispatch.objects.update(state="sending", attempts=services.ATTEMPTS_MAX)
    services.sweep(now=now() + datetime.timedelta(seconds=services.SENDING_LOST_SECONDS + 1))
    assert row(dispatch) == ("given_up", 5, "the worker was lost while sending", False)


def test_a_key_that_cannot_be_read_is_an_attempt_like_any_other(dispatch: Dispatch) -> None:
    core_github.client.cache_clear()
    with override_settings(GITHUB_APP_PRIVATE_KEY="no key"):
        assert send(dispatch) is DispatchState.PENDING
    core_github.client.cache_clear()
    assert row(dispatch)[:2] == ("pending", 1)
    assert row(dispatch)[2].startswith("GitHub could not be asked: ")


def test_an_app_that_was_installed_anew_is_found(dispatch: Dispatch, github: GitHubStandIn, client: Client) -> None:
    send(dispatch)
    github.fail("/dispatches$", status=401)
    send_webhook(client, PAYLOAD, delivery_id="d-2")
    services.fan_out(delivery_pk=Delivery.objects.get(delivery_id="d-2").pk, now=now())
    second = Dispatch.objects.get(delivery__delivery_id="d-2")
    assert send(second) is DispatchState.GIVEN_UP
    Dispatch.objects.filter(pk=second.pk).update(state="pending")
    assert send(second) is DispatchState.SENT
    assert [r.path for r in github.requests].count(f"/repos/{KESTREL}/installation") == 2


def test_an_answer_to_a_dispatch_that_is_still_being_sent_is_accepted(
    dispatch: Dispatch, github: GitHubStandIn, client: Client
) -> None:
    Dispatch.objects.update(state="sending")
    assert Downstream(KESTREL, github, client, "5").start().status_code == 200


def test_github_sees_one_token_for_many_dispatches(dispatch: Dispatch, github: GitHubStandIn, client: Client) -> None:
    send(dispatch)
    send_webhook(client, PAYLOAD, delivery_id="d-2")
    services.fan_out(delivery_pk=Delivery.objects.get(delivery_id="d-2").pk, now=now())
    assert send(Dispatch.objects.get(delivery__delivery_id="d-2")) is DispatchState.SENT
    installation = github.requests[1].path.split("/")[3]
    assert [(r.method, r.path) for r in github.requests] == [
        ("GET", f"/repos/{KESTREL}/installation"),
        ("POST", f"/app/installations/{installation}/access_tokens"),
        ("POST", f"/repos/{KESTREL}/dispatches"),
        ("POST", f"/repos/{KESTREL}/dispatches"),
    ]
