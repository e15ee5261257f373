"""Two people decide about one repository at once: exactly one decision is made."""

import threading

import pytest
from django.db import connections

from apps.audit.models import Event
from apps.core.clock import now
from apps.core.errors import Problem
from apps.platforms.models import LevelInterval, Repository
from apps.platforms.services import change_level
from tests.factories.listing import TESTS, listed
from tests.live import ClonedDatabase


@pytest.mark.parametrize("targets", [(2, 0), (2, 2)], ids=["different", "the same"])
def test_exactly_one_of_two_decisions_at_once_is_made(
    cloned_database: ClonedDatabase, targets: tuple[int, int]
) -> None:
    for _ in range(10):
        listed({"acme/torch": 1})
        before = Event.objects.count()
        both_have_read = threading.Barrier(2, timeout=30)
        outcomes: list[str] = []

        def decide(level: int, barrier: threading.Barrier = both_have_read, said: list[str] = outcomes) -> None:
            repository = Repository.objects.get()
            barrier.wait()
            try:
                change_level(repository=repository, level=level, reason="mine", actor=TESTS, now=now())
                said.append(f"L{level}")
            except Problem as problem:
                said.append(problem.code)
            finally:
                connections.close_all()

        threads = [threading.Thread(target=decide, args=[level]) for level in targets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        level = Repository.objects.get().level
        assert sorted(outcomes) == [f"L{level}", "level_stale"]
        assert level in targets
        assert Event.objects.count() == before + 1
        assert list(LevelInterval.objects.filter(ended_at=None).values_list("level", flat=True)) == [level]
