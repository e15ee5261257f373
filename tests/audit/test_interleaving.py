"""Whatever writers do at the same time, in whatever order they end: the chain verifies, and says what was committed."""

import threading

import hypothesis
from django.db import connections, transaction
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pytest_django import Settings

from apps.audit import offline, publishing, services
from apps.audit.export import Scope
from apps.audit.exporting import lines_of_log
from apps.audit.models import Checkpoint, Event, Head
from apps.audit.selectors import body_of
from apps.core.clock import now
from tests.factories.checkpoints import WHEN, seed
from tests.factories.events import event
from tests.live import ClonedDatabase

# A transaction: how many events it appends, whether they are public decisions, whether it is committed.
transactions = st.tuples(st.integers(1, 3), st.booleans(), st.booleans())
writers = st.lists(st.lists(transactions, max_size=4), min_size=2, max_size=4)


@given(writers)
@hypothesis.settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_any_interleaving_of_writers_the_chain_verifies(
    cloned_database: ClonedDatabase, plan: list[list[tuple[int, bool, bool]]]
) -> None:
    before = Head.objects.get().seq
    together = threading.Barrier(len(plan))

    def write(writer: int) -> None:
        together.wait()
        for number, (events, is_decision, is_committed) in enumerate(plan[writer]):
            with transaction.atomic():
                for place in range(events):
                    event(f"{writer}.{number}.{place}", is_decision=is_decision)
                transaction.set_rollback(not is_committed)
        connections.close_all()

    threads = [threading.Thread(target=write, args=[writer]) for writer in range(len(plan))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [body_of(each)["summary"] for each in Event.objects.filter(seq__gt=before).order_by("seq")]
    for writer in range(len(plan)):
        mine = [summary for summary in found if summary.startswith(f"{writer}.")]
        assert mine == [
            f"{writer}.{number}.{place}"
            for number, (events, _, is_committed) in enumerate(plan[writer])
            for place in range(events)
            if is_committed
        ]
    head = Head.objects.get()
    assert head.seq == before + len(found)
    proof = services.verify(now=now())
    assert (proof.verified_to, proof.head_hash, proof.finding) == (head.seq, head.hash, "")
    for scope in Scope:
        content = "".join(lines_of_log(scope, now=now())).encode()
        examined = offline.examine(content.splitlines(keepends=True))
        assert (examined.verified_to, examined.head_hash, examined.finding) == (head.seq, head.hash, "")


def test_many_who_make_the_days_checkpoint_at_once_make_one(
    cloned_database: ClonedDatabase, settings: Settings
) -> None:
    settings.CHECKPOINT_KEY = seed()
    event()
    together = threading.Barrier(4)
    made: list[Checkpoint | None] = []

    def make() -> None:
        together.wait()
        made.append(publishing.make_daily(now=WHEN))
        connections.close_all()

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [Checkpoint.objects.get()] * 4
