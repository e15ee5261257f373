"""Appending: what an event says, and that the chain has no gap however many write at once."""

import datetime
import threading

import pytest
from django.db import connections, transaction

from apps.audit import services
from apps.audit.chain import GENESIS, Proof, canonical, link_hash
from apps.audit.enums import Action
from apps.audit.models import Event, Head
from apps.audit.selectors import body_of
from apps.core.clock import now
from tests.factories.events import event as append
from tests.live import ClonedDatabase

WHEN = datetime.datetime(2026, 1, 31, 23, 59, 59, 5, tzinfo=datetime.UTC)


@pytest.mark.django_db
def test_an_event_says_the_same_in_its_body_and_in_its_columns() -> None:
    event = append(
        "It rose",
        before={"level": "L1"},
        after={"level": "L2"},
        reason="60 days green",
        evidence={"runs": 120},
        now=WHEN,
    )
    body = {
        "format": 1,
        "seq": 1,
        "at": "2026-01-31T23:59:59.000005Z",
        "action": "repository.level_changed",
        "actor": {"kind": "user", "id": "u-1", "label": "ada"},
        "subject": {"kind": "repository", "id": "r-1", "label": "acme/torch"},
        "summary": "It rose",
        "before": {"level": "L1"},
        "after": {"level": "L2"},
        "reason": "60 days green",
        "evidence": {"runs": 120},
        "is_decision": True,
    }
    assert Event.objects.values().get() == {
        "seq": 1,
        "at": WHEN,
        "action": "repository.level_changed",
        "actor_kind": "user",
        "actor_id": "u-1",
        "actor_label": "ada",
        "subject_kind": "repository",
        "subject_id": "r-1",
        "subject_label": "acme/torch",
        "is_decision": True,
        "body": canonical(body),
        "previous_hash": GENESIS,
        "hash": link_hash(GENESIS, canonical(body)),
    }
    assert body_of(event) == body


def test_an_event_needs_the_transaction_of_its_change(cloned_database: ClonedDatabase) -> None:
    with pytest.raises(RuntimeError) as caught:
        services.record(
            action=Action.LEVEL_CHANGED,
            actor=services.HUB,
            subject=services.Subject("repository", "r-1", "acme/torch"),
            summary="acme/torch raised",
            now=WHEN,
        )
    assert str(caught.value) == "audit.record needs the transaction of the change that it records"
    assert not Event.objects.exists()


def test_a_rolled_back_transaction_leaves_no_gap(cloned_database: ClonedDatabase) -> None:
    append("first")
    with transaction.atomic():
        append("never")
        transaction.set_rollback(True)
    append("second")
    events = Event.objects.order_by("seq")
    assert [(event.seq, body_of(event)["summary"]) for event in events] == [(1, "first"), (2, "second")]
    assert services.verify(now=now()) == Proof(2, Head.objects.get().hash)


def test_many_writers_make_one_chain_without_a_gap(cloned_database: ClonedDatabase) -> None:
    def write(writer: int) -> None:
        for number in range(20):
            append(f"{writer}.{number}")
        connections.close_all()

    threads = [threading.Thread(target=write, args=[writer]) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = list(Event.objects.order_by("seq"))
    assert [event.seq for event in events] == list(range(1, 161))
    written = sorted(body_of(event)["summary"] for event in events)
    assert written == sorted(f"{writer}.{number}" for writer in range(8) for number in range(20))
    assert services.verify(now=now()) == Proof(160, events[-1].hash)
