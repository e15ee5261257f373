"""The test run's own fixtures: what they promise to every other test."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
import requests
from django.db import connection, connections

from apps.core.clock import now
from apps.core.models import Wakeup
from apps.core.tasks import drain_wakeups
from apps.platforms.topics import REPOSITORY_UNPINNED
from tests.accelhub.process_tree import eventually
from tests.live import ClonedDatabase, Hub, Worker, redis_client, refuse_flushing


def add_wakeup() -> None:
    """A row that a worker hands on: about a repository that does not exist, so that nothing comes of it."""
    Wakeup.objects.create(topic=REPOSITORY_UNPINNED, key="0", created_at=now())


def test_a_cloned_database_commits_for_every_thread(cloned_database: ClonedDatabase) -> None:
    add_wakeup()
    seen: list[int] = []

    def look() -> None:
        seen.append(Wakeup.objects.count())
        connections.close_all()

    other = threading.Thread(target=look)
    other.start()
    other.join()
    assert seen == [1]
    assert connection.settings_dict["NAME"] == cloned_database.name


def test_the_next_cloned_database_knows_nothing_of_it(cloned_database: ClonedDatabase) -> None:
    assert not Wakeup.objects.exists()


@pytest.mark.django_db
def test_a_plain_database_test_stays_on_the_template() -> None:
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database(), count(*) FROM pg_database WHERE datname LIKE %s", [f"{name}_%"])
        assert cursor.fetchone() == (name, 0)


def test_the_hub_answers_http_from_the_cloned_database(hub: Hub) -> None:
    answer = requests.get(f"{hub.url}/readyz", timeout=10)
    assert (answer.status_code, answer.json()) == (200, {"ok": True, "failing": [], "overdue": []})


def test_a_worker_process_works_on_the_cloned_database(celery_worker_process: Worker) -> None:
    add_wakeup()
    drain_wakeups.delay()
    eventually(lambda: not Wakeup.objects.exists(), "the worker took the row")


def test_redis_is_empty_for_who_asks_for_it(empty_redis: None) -> None:
    with redis_client() as redis:
        redis.set("left", "behind")


def test_redis_is_empty_again(empty_redis: None) -> None:
    with redis_client() as redis:
        assert not redis.exists("left")


@pytest.mark.parametrize(
    ("fixtures", "marker", "message"),
    [
        (["transactional_db"], None, "use `db`, or `cloned_database`"),
        (["live_server"], None, "`hub` for a live server"),
        ([], pytest.mark.django_db(transaction=True).mark, "no test may flush"),
        (["db", "cloned_database"], None, "not both"),
        (["cloned_database"], pytest.mark.django_db.mark, "not both"),
    ],
)
def test_flushing_tests_are_told_what_to_use(fixtures: list[str], marker: Any, message: str) -> None:
    item = SimpleNamespace(fixturenames=fixtures, get_closest_marker=lambda name: marker)
    with pytest.raises(pytest.fail.Exception, match=message):
        refuse_flushing(cast(pytest.Item, item))
