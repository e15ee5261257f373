"""`manage.py audit verify` and the hub's own check: they prove the chain, or name the first link that is broken."""

import logging
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from apps.audit.models import Head, LastVerification
from apps.audit.tasks import verify_chain
from tests.factories.events import event as append

pytestmark = pytest.mark.django_db


@pytest.fixture
def three_events() -> None:
    for summary in ("one", "two", "three"):
        append(summary)


def tamper(*statements: str) -> None:
    """Change the log as a superuser who switches its guards off."""
    with connection.cursor() as cursor:
        for statement in (
            "ALTER TABLE audit_event DISABLE TRIGGER USER",
            *statements,
            "ALTER TABLE audit_event ENABLE TRIGGER USER",
        ):
            cursor.execute(statement)


def test_a_sound_log_is_proved_and_remembered(three_events: None) -> None:
    out = StringIO()
    call_command("audit", "verify", stdout=out)
    assert out.getvalue() == f"3 events, chain sound, head {Head.objects.get().hash}\n"
    assert list(LastVerification.objects.values_list("verified_to", "finding")) == [(3, "")]


@pytest.mark.parametrize(
    ("statement", "verified_to", "finding"),
    [
        (
            "UPDATE audit_event SET body = replace(body, 'two', 'one') WHERE seq = 2",
            1,
            "event 2 was changed: its hash does not fit its body",
        ),
        (
            "UPDATE audit_event SET actor_label = 'eve' WHERE seq = 3",
            2,
            "event 3 was changed: column actor_label does not repeat its body",
        ),
        (
            "UPDATE audit_event SET at = at + interval '1 microsecond' WHERE seq = 1",
            0,
            "event 1 was changed: column at does not repeat its body",
        ),
        (
            "UPDATE audit_event SET is_decision = false WHERE seq = 2",
            1,
            "event 2 was changed: column is_decision does not repeat its body",
        ),
        (
            "DELETE FROM audit_event WHERE seq = 3",
            2,
            "the log ends at event 2, its head says 3: events were cut off its end",
        ),
        ("DELETE FROM audit_event WHERE seq = 2", 1, "event 2 is missing: the next one stored is 3"),
        ("DELETE FROM audit_event", 0, "the log ends at event 0, its head says 3: events were cut off its end"),
    ],
)
def test_tampering_is_found_and_the_first_broken_link_named(
    three_events: None, statement: str, verified_to: int, finding: str
) -> None:
    call_command("audit", "verify", stdout=StringIO())
    tamper(statement)
    with pytest.raises(CommandError) as caught:
        call_command("audit", "verify")
    assert str(caught.value) == f"Broken after event {verified_to}: {finding}."
    assert list(LastVerification.objects.values_list("verified_to", "finding")) == [(verified_to, finding)]


def test_the_hub_proves_the_chain_by_itself(three_events: None, caplog: pytest.LogCaptureFixture) -> None:
    assert verify_chain() == "verified to #3"
    assert caplog.record_tuples == []


def test_the_hub_reports_a_broken_chain_to_its_operators(three_events: None, caplog: pytest.LogCaptureFixture) -> None:
    tamper("DELETE FROM audit_event WHERE seq = 2")
    finding = "event 2 is missing: the next one stored is 3"
    assert verify_chain() == finding
    assert caplog.record_tuples == [("apps.audit.tasks", logging.ERROR, f"audit log broken: {finding}")]
