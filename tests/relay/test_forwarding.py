"""What the relay posted goes on to the dashboard that stood there before: byte for byte, in order, not lost."""

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client, override_settings

from apps.core.backoff import ATTEMPTS_MAX, BACKOFF_SECONDS
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.relay import forwarding
from apps.relay.adoption import ForwardState
from apps.relay.models import Forward
from tests.factories.listing import listed
from tests.relay import dashboard as dashboards
from tests.relay.dashboard import Dashboard
from tests.relay.posts import KESTREL, KEY, post, post_body

pytestmark = pytest.mark.django_db


@pytest.fixture
def dashboard() -> Iterator[Dashboard]:
    listed({KESTREL: 2})
    with (
        dashboards.running() as running,
        override_settings(
            MODE="observer", HUD_BOT_KEY=KEY, HUD_FORWARD_URL=running.url, HUD_FORWARD_KEY="the-dashboards-key"
        ),
    ):
        yield running


def send(forward: Forward, *, later: float = 0.0) -> ForwardState | None:
    return forwarding.send(forward_pk=forward.pk, now=now() + datetime.timedelta(seconds=later))


def row(forward: Forward) -> tuple[Any, ...]:
    forward.refresh_from_db()
    return forward.state, forward.attempts, forward.error, bool(forward.body)


RAW = b'{ "trusted":{"verified_repo":"kestrel-demo/torch-kestrel"},\n "untrusted": {"callback_payload": {"event_type":\
 "push","delivery_id":"d-1","workflow":{"name":"CI","run_id":7,"status":"in_progress","job_name":"\\u00e9","check_run_id":1}}}}'


def test_the_dashboard_gets_the_bytes_that_came_with_its_own_key(client: Client, dashboard: Dashboard) -> None:
    assert post(client, RAW).json() == {"ok": True, "status": "applied"}
    forward = Forward.objects.get()
    assert list(Wakeup.objects.filter(topic="forward_pending").values_list("key", flat=True)) == [str(forward.pk)]
    assert send(forward) is ForwardState.SENT
    assert (dashboard.bodies, dashboard.keys) == ([RAW], ["the-dashboards-key"])
    assert row(forward) == ("sent", 1, "", False)
    assert send(forward) is None


@pytest.mark.parametrize("status", [500, 503, 429, 408, 0])
def test_what_it_did_not_take_is_sent_again_later(client: Client, dashboard: Dashboard, status: int) -> None:
    post(client, post_body())
    dashboard.answers = [(status, {})]
    forward = Forward.objects.get()
    assert send(forward) is ForwardState.PENDING
    said = f"answered {status}" if status else "did not answer: ConnectionError"
    assert row(forward) == ("pending", 1, f"the dashboard {said}", True)
    assert 0 <= (forward.due_at - forward.changed_at).total_seconds() < BACKOFF_SECONDS[0]
    Forward.objects.update(due_at=now() + datetime.timedelta(seconds=1))
    assert send(forward) is None
    assert send(forward, later=2) is ForwardState.SENT
    assert row(forward) == ("sent", 2, "", False)


def test_it_waits_as_long_as_the_dashboard_asks(client: Client, dashboard: Dashboard) -> None:
    post(client, post_body())
    dashboard.answers = [(429, {"Retry-After": "300"})]
    forward = Forward.objects.get()
    send(forward)
    assert send(forward, later=290) is None
    assert send(forward, later=301 + BACKOFF_SECONDS[0]) is ForwardState.SENT


@pytest.mark.parametrize("status", [400, 401, 404, 413, 302])
def test_what_it_refuses_is_given_up_with_its_status(client: Client, dashboard: Dashboard, status: int) -> None:
    post(client, post_body())
    dashboard.answers = [(status, {})]
    forward = Forward.objects.get()
    assert send(forward) is ForwardState.GIVEN_UP
    assert row(forward) == ("given_up", 1, f"the dashboard answered {status}", False)


def test_after_enough_attempts_it_is_given_up(client: Client, dashboard: Dashboard) -> None:
    post(client, post_body())
    dashboard.answers = [(503, {})] * 100
    forward = Forward.objects.get()
    states = [send(forward, later=10_000 * n) for n in range(ATTEMPTS_MAX)]
    assert states == [ForwardState.PENDING] * (ATTEMPTS_MAX - 1) + [ForwardState.GIVEN_UP]
    assert row(forward) == ("given_up", ATTEMPTS_MAX, "the dashboard answered 503", False)


def test_posts_of_one_job_stay_in_order_and_others_do_not_wait(client: Client, dashboard: Dashboard) -> None:
    post(client, post_body())
    post(client, post_body("success"))
    post(client, post_body("success", job_name="test"))
    start, end, other = Forward.objects.order_by("pk")
    dashboard.answers = [(503, {})]
    assert [send(start), send(end), send(other)] == [ForwardState.PENDING, None, ForwardState.SENT]
    Wakeup.objects.all().delete()
    assert send(start, later=60) is ForwardState.SENT
    assert list(Wakeup.objects.filter(topic="forward_pending").values_list("key", flat=True)) == [str(end.pk)]
    assert send(end) is ForwardState.SENT


def test_the_sweep_wakes_what_is_due_or_lost_and_forgets_what_is_settled(client: Client, dashboard: Dashboard) -> None:
    for name in ("due", "waits", "lost", "sent", "old", "given up"):
        post(client, post_body(job_name=name))
    due, waits, lost, sent, old, given_up = Forward.objects.order_by("pk")
    hour, week = datetime.timedelta(hours=1), datetime.timedelta(days=8)
    Forward.objects.filter(pk=waits.pk).update(due_at=now() + hour)
    Forward.objects.filter(pk=lost.pk).update(state="sending", changed_at=now() - hour)
    Forward.objects.filter(pk=sent.pk).update(state="sent")
    Forward.objects.filter(pk=old.pk).update(state="sent", received_at=now() - week)
    Forward.objects.filter(pk=given_up.pk).update(state="given_up", received_at=now() - week)
    Wakeup.objects.all().delete()
    assert forwarding.sweep(now=now()) == 2
    assert list(Wakeup.objects.order_by("pk").values_list("key", flat=True)) == [str(due.pk), str(lost.pk)]
    assert set(Forward.objects.all()) == {due, waits, lost, sent, given_up}


def test_an_attempt_that_was_taken_back_does_not_overwrite(client: Client, dashboard: Dashboard) -> None:
    post(client, post_body())
    forward = Forward.objects.get()
    Forward.objects.update(state="sending", attempts=2)
    forward.attempts = 1
    forwarding._finish(forward, state=ForwardState.SENT, error="", wait=0.0, now=now())
    assert row(forward)[0] == "sending"
