"""The demo's pretended time: heard by requests and by what follows from them, and by nothing outside a demo."""

import datetime
import time
from collections.abc import Iterator
from typing import Any

import pytest
from celery import shared_task
from django.conf import settings as django_settings
from django.db import transaction
from django.test import Client

from accelhub.celery import CLOCK_HEADER as MESSAGE_HEADER
from accelhub.celery import app
from apps.core import clock, wakeups
from apps.core.middleware import CLOCK_HEADER
from apps.core.models import Wakeup
from apps.relay import limits
from apps.relay.models import Delivery, Dispatch
from apps.simulator.standin import GitHubStandIn
from tests.factories.listing import listed
from tests.live import Worker, redis_client
from tests.relay.downstream import PAYLOAD, refusal, send_webhook

THEN = datetime.datetime(2026, 3, 14, 15, 9, 26, tzinfo=datetime.UTC)
# How long (seconds) a worker may take. A bound against hanging, not an expectation.
ENOUGH = 30.0


def is_now(moment: datetime.datetime) -> bool:
    return abs(datetime.datetime.now(datetime.UTC) - moment) < datetime.timedelta(seconds=ENOUGH)


@pytest.fixture
def demo(settings: Any) -> None:
    settings.DEMO = True


class TestClock:
    def test_it_stands_where_it_is_told_and_goes_on_afterwards(self, demo: None) -> None:
        with clock.at(THEN):
            assert (clock.now(), clock.pretended()) == (THEN, THEN)
            with clock.at(None):
                assert is_now(clock.now())
                assert clock.pretended() is None
            assert clock.now() == THEN
        assert is_now(clock.now())

    def test_what_is_measured_against_the_world_stays_real(self, demo: None) -> None:
        assert clock.real(THEN) == THEN
        with clock.at(THEN):
            assert is_now(clock.real(THEN))

    def test_outside_a_demo_nothing_is_pretended(self) -> None:
        with pytest.raises(RuntimeError, match="only a demo"), clock.at(THEN):
            pass
        assert is_now(clock.now())

    def test_now_is_cheap(self) -> None:
        begin = time.perf_counter()
        for _ in range(10_000):
            clock.now()
        assert time.perf_counter() - begin < 0.5

    @pytest.mark.parametrize("text", ["2026-03-14T15:09:26Z", "2026-03-14T15:09:26+00:00"])
    def test_a_time_is_read(self, text: str) -> None:
        assert clock.read(text) == THEN

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("", "not an ISO time"),
            ("yesterday", "not an ISO time"),
            ("2026-03-14T15:09:26Z, 2026-03-14T15:09:26Z", "not an ISO time"),
            ("2026-03-14T15:09:26", "not in UTC"),
            ("2026-03-14T15:09:26+02:00", "not in UTC"),
            ("2026-03-14", "not in UTC"),
            ("9999-12-31T23:59:59Z", "not in the past"),
        ],
    )
    def test_a_time_is_refused(self, text: str, why: str) -> None:
        with pytest.raises(ValueError, match=why):
            clock.read(text)

    def test_the_present_is_not_the_past(self) -> None:
        with pytest.raises(ValueError, match="not in the past"):
            clock.read(datetime.datetime.now(datetime.UTC).isoformat())


@pytest.mark.django_db
class TestHeader:
    def post(self, client: Client, text: str) -> Any:
        client.defaults["HTTP_X_ACCELHUB_CLOCK"] = text
        return send_webhook(client, PAYLOAD)

    def test_a_demo_takes_a_webhook_at_the_time_it_names(self, client: Client, demo: None) -> None:
        assert self.post(client, THEN.isoformat()).status_code == 202
        assert Delivery.objects.get().received_at == THEN
        assert Wakeup.objects.get(topic="delivery_received").created_at == THEN
        assert clock.pretended() is None

    def test_without_it_the_time_is_now(self, client: Client, demo: None) -> None:
        assert send_webhook(client, PAYLOAD).status_code == 202
        assert is_now(Delivery.objects.get().received_at)

    @pytest.mark.parametrize("path", ["/", "/healthz", "/github/webhook", "/github/callback", "/api/v1/nothing/"])
    @pytest.mark.parametrize("text", ["2026-03-14T15:09:26Z", "", "nonsense"])
    def test_outside_a_demo_it_is_refused_everywhere(self, client: Client, path: str, text: str) -> None:
        response = client.get(path, headers={CLOCK_HEADER: text})
        assert refusal(response) == (400, "malformed", "X-AccelHub-Clock")
        assert "only a demo" in response.json()["detail"]

    def test_outside_a_demo_nothing_of_the_request_is_kept(self, client: Client) -> None:
        assert self.post(client, THEN.isoformat()).status_code == 400
        assert not Delivery.objects.exists()

    @pytest.mark.parametrize(
        "text", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "", "yesterday", "2026-03-14T15:09:26"]
    )
    def test_a_demo_refuses_the_future_and_what_is_no_time(self, client: Client, demo: None, text: str) -> None:
        assert refusal(self.post(client, text)) == (400, "malformed", "X-AccelHub-Clock")
        assert not Delivery.objects.exists()


class TestLimit:
    def test_it_counts_real_minutes_only(self, empty_redis: None, demo: None) -> None:
        with clock.at(THEN):
            for _ in range(limits.CALLBACKS_PER_MINUTE + 1):
                limits.check("4711")
        with redis_client() as redis:
            assert redis.keys("limits*") == []
        limits.check("4711")
        with redis_client() as redis:
            assert len(redis.keys("limits*")) == 1


class TestWakeups:
    """A wake-up that is older than any fresh one is looked at under its own time, in a demo."""

    @pytest.fixture
    def heard(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, datetime.datetime]:
        times: dict[str, datetime.datetime] = {}
        monkeypatch.setattr(wakeups, "_handlers", {})
        monkeypatch.setattr(wakeups, "_lazy", set())

        def handle(keys: list[str]) -> None:
            times.update(dict.fromkeys(keys, clock.now()))

        wakeups.register("one", handle)
        wakeups.register("many", handle, lazy=True)
        return times

    def wake(self) -> None:
        wakeups.wake("one", ["old"], now=THEN)
        wakeups.wake("one", ["older"], now=THEN - datetime.timedelta(days=1))
        wakeups.wake("one", ["fresh"], now=clock.now())
        wakeups.wake("many", ["shared"], now=THEN)

    @pytest.mark.django_db
    def test_in_a_demo(self, demo: None, heard: dict[str, datetime.datetime]) -> None:
        self.wake()
        with clock.at(THEN + datetime.timedelta(days=2)):  # as a task that was published under it
            assert wakeups.drain() == 3
            assert wakeups.drain(lazy=True) == 1
        assert heard["old"] == THEN
        assert heard["older"] == THEN - datetime.timedelta(days=1)
        assert is_now(heard["fresh"])
        assert is_now(heard["shared"]), "what many changes share has no time of its own"

    @pytest.mark.django_db
    def test_outside_a_demo_age_means_nothing(self, heard: dict[str, datetime.datetime]) -> None:
        self.wake()
        assert wakeups.drain() + wakeups.drain(lazy=True) == 4
        assert all(is_now(moment) for moment in heard.values())


@shared_task(name="tests.tell_the_time")
def tell_the_time(heard: list[datetime.datetime]) -> None:
    heard.append(clock.now())


class TestMessages:
    @pytest.fixture
    def published(self, empty_redis: None) -> Iterator[list[dict[str, Any]]]:
        """The headers of what is published."""
        from celery.signals import after_task_publish

        seen: list[dict[str, Any]] = []

        def note(headers: dict[str, Any], **_: Any) -> None:
            seen.append(headers)

        after_task_publish.connect(note)
        yield seen
        after_task_publish.disconnect(note)

    def test_a_message_carries_the_time_it_was_published_under(
        self, demo: None, published: list[dict[str, Any]]
    ) -> None:
        with clock.at(THEN):
            app.send_task("tests.nobody")
        app.send_task("tests.nobody")
        assert [headers.get(MESSAGE_HEADER) for headers in published] == [THEN.isoformat(), None]

    @pytest.mark.parametrize(
        ("is_demo", "header", "is_heard"),
        [
            (True, THEN.isoformat(), True),
            (True, None, False),
            (True, "9999-12-31T23:59:59Z", False),
            (True, "nonsense", False),
            (True, 7, False),
            (False, THEN.isoformat(), False),
        ],
    )
    def test_a_task_hears_it_in_a_demo_only(self, settings: Any, is_demo: bool, header: Any, is_heard: bool) -> None:
        settings.DEMO = is_demo
        heard: list[datetime.datetime] = []
        tell_the_time.apply((heard,), headers={MESSAGE_HEADER: header} if header else {})
        assert heard == [THEN] if is_heard else is_now(heard[0])
        assert clock.pretended() is None


class TestWorker:
    """The same with real processes: HTTP would only add what TestHeader shows."""

    @pytest.fixture
    def github(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubStandIn]:
        with GitHubStandIn(
            app_id=django_settings.GITHUB_APP_ID, app_private_key=django_settings.GITHUB_APP_PRIVATE_KEY
        ) as standin:
            standin.add_repository("acme/torch")
            monkeypatch.setenv("ACCELHUB_GITHUB_API_URL", standin.url)
            yield standin

    @pytest.fixture
    def worker_is_demo(self, request: pytest.FixtureRequest, github: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ACCELHUB_DEMO", str(int(request.param)))

    @pytest.mark.parametrize("worker_is_demo", [True, False], indirect=True, ids=["demo", "no demo"])
    def test_an_old_wakeup(
        self, request: pytest.FixtureRequest, worker_is_demo: None, celery_worker_process: Worker
    ) -> None:
        listed({"acme/torch": 2})
        with transaction.atomic():
            delivery = _delivery("received")
            wakeups.wake("delivery_received", [str(delivery.pk)], now=THEN)
        sent = _sent()
        if "no demo" in request.node.name:
            assert is_now(sent.created_at)
            assert is_now(sent.sent_at)
        else:
            assert (sent.created_at, sent.sent_at) == (THEN, THEN)
        assert is_now(sent.changed_at), "the sweep measures real time"

    @pytest.mark.parametrize("worker_is_demo", [True, False], indirect=True, ids=["demo", "no demo"])
    def test_a_forged_message(
        self, request: pytest.FixtureRequest, worker_is_demo: None, celery_worker_process: Worker
    ) -> None:
        repository = listed({"acme/torch": 2})["acme/torch"]
        moment = clock.now()
        dispatch = Dispatch.objects.create(
            delivery=_delivery("fanned_out"),
            repository=repository,
            created_at=moment,
            changed_at=moment,
            next_attempt_at=moment,
        )
        app.send_task("apps.relay.tasks.send_dispatch", [dispatch.pk], headers={MESSAGE_HEADER: THEN.isoformat()})
        sent = _sent()
        assert is_now(sent.sent_at) if "no demo" in request.node.name else sent.sent_at == THEN


def _delivery(state: str) -> Delivery:
    return Delivery.objects.create(delivery_id="d-1", event="push", state=state, received_at=THEN, body="{}")


def _sent() -> Any:
    deadline = time.monotonic() + ENOUGH
    while not Dispatch.objects.filter(state="sent").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return Dispatch.objects.get(state="sent")
