"""Two rounds at once: what upstream says is applied once."""

import threading

from django.db import connections

from apps.audit.models import Event
from apps.core.clock import now
from apps.platforms.models import AllowlistEdit, Demotion, LevelInterval, Repository
from apps.platforms.services import change_level
from apps.platforms.sync import sync
from tests.factories.listing import TESTS
from tests.factories.upstream import Upstream
from tests.live import ClonedDatabase

LISTED = "L1:\n  - acme/one\nL3:\n  npu:\n    acme/three:\n"


def at_once(count: int) -> list[str]:
    """So many rounds at the same moment. Returns what they failed with."""
    together = threading.Barrier(count, timeout=30)
    failed: list[str] = []

    def run() -> None:
        together.wait()
        try:
            sync(now=now())
        except Exception as error:
            failed.append(repr(error))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


def test_two_rounds_at_once_write_each_thing_once(cloned_database: ClonedDatabase, upstream: Upstream) -> None:
    upstream.push(LISTED)
    assert at_once(3) == []
    assert sorted(Repository.objects.values_list("full_name", "level")) == [("acme/one", 1), ("acme/three", 3)]
    assert Event.objects.count() == LevelInterval.objects.count() == 2
    one = Repository.objects.get(full_name="acme/one")
    change_level(repository=one, level=2, reason="so", actor=TESTS, now=now())
    upstream.open_pull_requests()
    upstream.held.merge(1)
    upstream.demote("acme/three", LISTED + "L2:\n")
    assert at_once(3) == []
    assert AllowlistEdit.objects.get().state == "merged"
    assert Demotion.objects.get().state == "open"
    actions = Event.objects.filter(seq__gt=2).order_by("seq").values_list("action", flat=True)
    assert list(actions) == [
        *("repository.level_decided", "repository.pull_request_opened"),
        *("repository.level_changed", "repository.demotion_proposed"),
    ]
