"""Wake-ups: written with the change that needs them, handed on once, never lost."""

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from django.db import connection, connections, transaction

from accelhub.env import BASE_DIR
from apps.core import wakeups
from apps.core.clock import now
from apps.core.models import Wakeup
from apps.core.tasks import drain_lazy_wakeups, drain_wakeups
from apps.relay.models import Delivery, Dispatch
from tests.factories.jobs import days_ago
from tests.factories.listing import listed
from tests.live import ClonedDatabase, Worker, redis_client

# How long (seconds) a worker may take. A bound against hanging, not an expectation.
ENOUGH = 30.0


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What the handlers of two topics of the test's own were given. They cannot handle the key `bad`."""
    given: dict[str, list[str]] = {"first": [], "second": []}
    monkeypatch.setattr(wakeups, "_handlers", dict(wakeups._handlers))

    def handler(topic: str) -> Callable[[list[str]], None]:
        def handle(keys: list[str]) -> None:
            if "bad" in keys:
                raise ValueError("cannot handle bad")
            given[topic] += keys

        return handle

    for topic in given:
        wakeups.register(topic, handler(topic))
    return given


def waiting() -> list[tuple[str, str]]:
    return list(Wakeup.objects.order_by("pk").values_list("topic", "key"))


@pytest.mark.django_db
def test_the_same_key_twice_is_one_row(handed: dict[str, list[str]]) -> None:
    wakeups.wake("first", ["1", "2", "1"], now=now())
    wakeups.wake("first", ["2"], now=now())
    wakeups.wake("second", ["2"], now=now())
    wakeups.wake("second", [], now=now())
    assert waiting() == [("first", "1"), ("first", "2"), ("second", "2")]


def test_a_rolled_back_change_leaves_none(cloned_database: ClonedDatabase, handed: dict[str, list[str]]) -> None:
    with transaction.atomic():
        wakeups.wake("first", ["1"], now=now())
        transaction.set_rollback(True)
    with transaction.atomic():
        wakeups.wake("first", ["2"], now=now())
    assert waiting() == [("first", "2")]


@pytest.mark.django_db
def test_a_drain_hands_on_each_key_once(handed: dict[str, list[str]]) -> None:
    wakeups.wake("first", ["1", "2"], now=now())
    wakeups.wake("second", ["3"], now=now())
    assert [wakeups.drain(), wakeups.drain()] == [3, 0]
    assert {topic: sorted(keys) for topic, keys in handed.items()} == {"first": ["1", "2"], "second": ["3"]}
    assert waiting() == []


@pytest.mark.django_db
def test_a_drain_takes_the_oldest_first_and_no_more_than_its_limit(handed: dict[str, list[str]]) -> None:
    wakeups.wake("first", ["1", "2", "3"], now=now())
    assert wakeups.drain(limit=2) == 2
    assert (sorted(handed["first"]), waiting()) == (["1", "2"], [("first", "3")])


@pytest.mark.django_db
def test_the_task_drains_until_nothing_waits(handed: dict[str, list[str]]) -> None:
    keys = [str(number) for number in range(1_201)]
    wakeups.wake("first", keys, now=now())
    assert drain_wakeups() == 1_201
    assert sorted(handed["first"], key=int) == keys


@pytest.mark.django_db
def test_a_key_that_cannot_be_handled_stays_and_stops_nobody(
    handed: dict[str, list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    wakeups.wake("first", ["1", "bad", "2"], now=now())
    wakeups.wake("second", ["3"], now=now())
    assert wakeups.drain() == 3
    assert handed == {"first": ["1", "2"], "second": ["3"]}
    assert waiting() == [("first", "bad")]
    bad = Wakeup.objects.get().pk
    assert caplog.record_tuples == [
        ("apps.core.wakeups", logging.ERROR, "wake-ups of first, one by one"),
        ("apps.core.wakeups", logging.ERROR, f"wake-up {bad} of first stays"),
    ]


@pytest.mark.django_db
def test_a_limit_holds_whatever_plan_the_table_gets(handed: dict[str, list[str]]) -> None:
    wakeups.wake("first", [str(number) for number in range(50)], now=now())
    with connections["default"].cursor() as cursor:
        cursor.execute("ANALYZE core_wakeup")
    assert wakeups.drain(limit=2) == 2


@pytest.mark.django_db
def test_a_lazy_topic_waits_for_beat(handed: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeups, "_lazy", {"second"})
    wakeups.wake("first", ["1"], now=now())
    wakeups.wake("second", ["2"], now=now())
    assert (drain_wakeups(), waiting()) == (1, [("second", "2")])
    assert (drain_lazy_wakeups(), waiting()) == (1, [])


@pytest.mark.django_db
def test_a_handlers_own_writes_are_undone_with_it(handed: dict[str, list[str]]) -> None:
    def handle(keys: list[str]) -> None:
        wakeups.wake("second", keys, now=now())
        raise ValueError

    wakeups._handlers["first"] = handle
    wakeups.wake("first", ["1"], now=now())
    wakeups.drain()
    assert waiting() == [("first", "1")]


@pytest.mark.django_db
def test_a_room_above_follows_a_topic_and_its_failure_keeps_the_rows(handed: dict[str, list[str]]) -> None:
    followed: list[list[str]] = []

    def follow(keys: list[str]) -> None:
        followed.append(keys)
        if len(followed) < 3:
            raise ValueError

    wakeups.follow("first", follow)
    wakeups.wake("first", ["1"], now=now())
    wakeups.drain()  # together, then one by one
    assert (waiting(), handed["first"]) == ([("first", "1")], ["1", "1"])
    wakeups.drain()
    assert (waiting(), followed, handed["first"]) == ([], [["1"]] * 3, ["1", "1", "1"])


def test_only_a_topic_that_is_can_be_followed(handed: dict[str, list[str]]) -> None:
    with pytest.raises(ValueError, match="third"):
        wakeups.follow("third", handed["first"].extend)


def test_two_drains_at_once_share_without_duplicates(
    cloned_database: ClonedDatabase, handed: dict[str, list[str]]
) -> None:
    keys = [str(number) for number in range(400)]
    wakeups.wake("first", keys, now=now())
    both_began = threading.Barrier(2, timeout=ENOUGH)
    handle = wakeups._handlers["first"]

    def meet(some: list[str]) -> None:
        if not both_began.broken and len(handed["first"]) == 0:
            both_began.wait()  # each holds its rows until the other has some too
        handle(some)

    wakeups._handlers["first"] = meet
    totals: list[int] = []

    def drain() -> None:
        totals.append(wakeups.drain(limit=200))
        connections.close_all()

    threads = [threading.Thread(target=drain) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals == [200, 200]
    assert sorted(handed["first"], key=int) == keys
    assert waiting() == []


def test_a_topic_that_locks_gets_each_key_in_a_transaction_of_its_own(
    cloned_database: ClonedDatabase, handed: dict[str, list[str]]
) -> None:
    """Otherwise two drains that lock what their keys name, each in its own order, would wait for each other."""
    transactions: list[tuple[str, int]] = []

    def look(keys: list[str]) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_xact_id()::text::bigint")
            number = cursor.fetchone()[0]
        transactions.extend((key, number) for key in keys)

    wakeups.register("locks", look, singly=True)
    wakeups.wake("locks", ["1", "2", "3"], now=now())
    assert wakeups.drain() == 3
    assert [key for key, _ in transactions] == ["1", "2", "3"]
    assert len({number for _, number in transactions}) == 3
    assert waiting() == []


def test_a_topic_has_one_handler() -> None:
    with pytest.raises(ValueError, match="topic repository_unpinned already has a handler"):
        wakeups.register("repository_unpinned", lambda keys: None)


@pytest.mark.django_db
def test_a_topic_without_a_handler_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="topic nobody has no handler"):
        wakeups.wake("nobody", ["1"], now=now())


COMMIT_WITHOUT_BROKER = """
from django.db import transaction
from apps.core.clock import now
from apps.core.wakeups import wake

with transaction.atomic():
    wake("repository_unpinned", ["1"], now=now())
print("committed")
"""


def test_without_a_broker_the_change_is_committed_and_its_row_waits(cloned_database: ClonedDatabase) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "--command", COMMIT_WITHOUT_BROKER],
        cwd=BASE_DIR,
        env=cloned_database.environment | {"REDIS_URL": "unix:///nowhere/redis.sock"},
        capture_output=True,
        text=True,
        timeout=ENOUGH,
    )
    assert (done.returncode, done.stdout) == (0, "committed\n")
    assert "wake-up not enqueued, beat will drain it" in done.stderr
    assert waiting() == [("repository_unpinned", "1")]


def test_a_burst_of_changes_is_one_task(
    cloned_database: ClonedDatabase, handed: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeups, "_debounce", wakeups._Debounce(ENOUGH))
    for number in range(50):
        with transaction.atomic():
            wakeups.wake("first", [str(number)], now=now())
    with redis_client() as redis:
        assert redis.llen("relay") == 1
    assert len(waiting()) == 50


@pytest.fixture
def no_github(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the worker sends to GitHub is refused on this machine and leaves it never."""
    monkeypatch.setenv("ACCELHUB_GITHUB_API_URL", "http://127.0.0.1:1")


def test_a_real_worker_drains_after_the_commit(no_github: None, celery_worker_process: Worker) -> None:
    listed({"acme/torch": 2})
    with transaction.atomic():
        delivery = Delivery.objects.create(
            delivery_id="d-1", event="pull_request", state="received", received_at=days_ago(3), body="{}"
        )
        wakeups.wake("delivery_received", [str(delivery.pk)], now=now())
    deadline = time.monotonic() + ENOUGH
    while not Dispatch.objects.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(Dispatch.objects.values_list("delivery__delivery_id", "delivery__state", "repository__full_name")) == [
        ("d-1", "fanned_out", "acme/torch")
    ]
