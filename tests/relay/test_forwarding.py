"""What the relay posted goes on to the dashboard that stood there before: byte for byte, in order, not lost."""

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client, override_settings

from apps.accounts.policy import Role
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core.backoff import ATTEMPTS_MAX, BACKOFF_SECONDS
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.relay import forwarding
from apps.relay.adoption import ForwardState
from apps.relay.models import Forward
from tests.factories.listing import listed, user
from tests.factories.pages import Page
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
    assert row(forward) == ("given_up", 1, f"the dashboard answered {status}", True)


def test_after_enough_attempts_it_is_given_up(client: Client, dashboard: Dashboard) -> None:
    post(client, post_body())
    dashboard.answers = [(503, {})] * 100
    forward = Forward.objects.get()
    states = [send(forward, later=10_000 * n) for n in range(ATTEMPTS_MAX)]
    assert states == [ForwardState.PENDING] * (ATTEMPTS_MAX - 1) + [ForwardState.GIVEN_UP]
    assert row(forward) == ("given_up", ATTEMPTS_MAX, "the dashboard answered 503", True)


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
    assert [row(each)[3] for each in (due, given_up)] == [True, False]


def test_an_attempt_that_was_taken_back_does_not_overwrite(client: Client, dashboard: Dashboard) -> None:
    post(client, post_body())
    forward = Forward.objects.get()
    Forward.objects.update(state="sending", attempts=2)
    forward.attempts = 1
    forwarding._finish(forward, state=ForwardState.SENT, error="", wait=0.0, now=now())
    assert row(forward)[0] == "sending"


# --- sending again ----------------------------------------------------------------------------------------------

PAGE = "/console/relay/"


@pytest.fixture
def given_up(client: Client, dashboard: Dashboard) -> Forward:
    """A result that the dashboard refused."""
    post(client, post_body())
    dashboard.answers = [(404, {})]
    forward = Forward.objects.get()
    send(forward)
    Wakeup.objects.all().delete()
    client.force_login(user(Role.OPERATOR, username="otto"))
    return forward


def test_what_was_given_up_is_sent_again_and_stands_in_the_log(
    client: Client, dashboard: Dashboard, given_up: Forward
) -> None:
    first = dashboard.bodies[0]
    label = "Send again: kestrel-demo/torch-kestrel d-1"
    assert [cells[-1] for cells in Page(client.get(PAGE)).tables["forwards"]] == [label]
    answer = client.post(PAGE, {"forward": str(given_up.pk)}, follow=True)
    said = "The result of kestrel-demo/torch-kestrel d-1 is sent to the dashboard again."
    assert said in Page(answer).text
    assert row(given_up) == ("pending", 0, "", True)
    assert list(Wakeup.objects.values_list("topic", "key")) == [("forward_pending", str(given_up.pk))]
    body = body_of(Event.objects.latest("seq"))
    assert {key: body[key] for key in ("action", "summary", "before", "after", "is_decision")} == {
        "action": "forward.resent",
        "summary": "The result of kestrel-demo/torch-kestrel d-1 is sent to the dashboard again",
        "before": {"state": "given_up", "attempts": 1, "error": "the dashboard answered 404"},
        "after": {"state": "pending"},
        "is_decision": False,
    }
    assert (body["actor"]["label"], body["subject"]["label"]) == ("otto", "kestrel-demo/torch-kestrel d-1")
    assert send(given_up) is ForwardState.SENT
    assert dashboard.bodies == [first, first]
    assert row(given_up) == ("sent", 1, "", False)


def _wait(client: Client, given_up: Forward) -> None:
    Forward.objects.filter(pk=given_up.pk).update(state="pending")


def _sent(client: Client, given_up: Forward) -> None:
    Forward.objects.filter(pk=given_up.pk).update(state="sent", body=b"")


def _old(client: Client, given_up: Forward) -> None:
    Forward.objects.filter(pk=given_up.pk).update(received_at=now() - datetime.timedelta(days=8))
    forwarding.sweep(now=now())


def _overtaken(client: Client, given_up: Forward) -> None:
    post(client, post_body("success"))
    assert send(Forward.objects.latest("pk")) is ForwardState.SENT


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (_wait, "It is pending: only what was given up is sent again."),
        (_sent, "It is sent: only what was given up is sent again."),
        (_old, "Its body is gone: what was given up is kept for 7 days."),
        (_overtaken, "A newer result of the same job has gone out: this one would undo it."),
    ],
)
def test_nothing_else_is_sent_again(client: Client, given_up: Forward, happens: Any, said: str) -> None:
    happens(client, given_up)
    before = (list(Forward.objects.values_list("pk", "state", "attempts")), Event.objects.count())
    assert said in Page(client.post(PAGE, {"forward": str(given_up.pk)}, follow=True)).text
    assert (list(Forward.objects.values_list("pk", "state", "attempts")), Event.objects.count()) == before


def test_a_newer_result_that_waits_or_was_given_up_too_is_no_hindrance(
    client: Client, dashboard: Dashboard, given_up: Forward
) -> None:
    post(client, post_body("success"))
    newer = Forward.objects.latest("pk")
    client.post(PAGE, {"forward": str(given_up.pk)})
    assert [send(newer), send(given_up), send(newer)] == [None, ForwardState.SENT, ForwardState.SENT]


def test_without_a_dashboard_nothing_is_sent_again(client: Client, given_up: Forward) -> None:
    with override_settings(HUD_FORWARD_URL=""):
        page = Page(client.post(PAGE, {"forward": str(given_up.pk)}, follow=True))
    assert "No dashboard is set: set ACCELHUB_HUD_FORWARD_URL first." in page.text
    assert row(given_up)[0] == "given_up"


@pytest.mark.parametrize("key", ["", "0", "x", "-1", "9" * 18, "9" * 40])
def test_a_result_that_is_not_there_is_not_found(client: Client, given_up: Forward, key: str) -> None:
    assert client.post(PAGE, {"forward": key}).status_code == 404


def test_only_who_runs_the_hub_sends_again(client: Client, given_up: Forward) -> None:
    form, statuses = {"forward": str(given_up.pk)}, {}
    for role in (Role.MAINTAINER, Role.OPERATOR):
        client.force_login(user(role))
        statuses[role] = client.post(PAGE, form).status_code
    assert statuses == {Role.MAINTAINER: 403, Role.OPERATOR: 302}
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user(Role.OPERATOR))
    assert strict.post(PAGE, form).status_code == 403
