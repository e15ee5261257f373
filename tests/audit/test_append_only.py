"""PostgreSQL guards the log by itself, whoever is connected: also a superuser that switched ordinary triggers off."""

from collections.abc import Sequence

import pytest
from django.db import IntegrityError, connection, transaction

from apps.audit.chain import link_hash
from apps.audit.models import Event, Head
from tests.factories.events import event as append

pytestmark = pytest.mark.django_db

ROLES = pytest.mark.parametrize("role", ["origin", "replica"])


# The first event once more, with another number, another body and other links.
COPY = """
INSERT INTO audit_event SELECT (jsonb_populate_record(e, jsonb_build_object(
    'seq', %s::bigint, 'previous_hash', %s::text, 'body', '{}', 'hash', %s::text
))).* FROM audit_event e
"""


def refused(statement: str, role: str, values: Sequence[str | int] | None = None) -> str:
    """PostgreSQL's words for refusing a statement."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL session_replication_role = {role}")
        with pytest.raises(IntegrityError) as caught, transaction.atomic():
            cursor.execute(statement, values)
    return str(caught.value).splitlines()[0]


@ROLES
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE audit_event SET body = '{}'", "the audit log is append-only: UPDATE on audit_event is refused"),
        ("UPDATE audit_event SET body = body", "the audit log is append-only: UPDATE on audit_event is refused"),
        ("DELETE FROM audit_event", "the audit log is append-only: DELETE on audit_event is refused"),
        ("TRUNCATE audit_event", "the audit log is append-only: TRUNCATE on audit_event is refused"),
        ("UPDATE audit_head SET seq = 0", "the head of the audit log moves only with an event"),
        ("UPDATE audit_head SET hash = repeat('0', 64)", "the head of the audit log moves only with an event"),
        ("DELETE FROM audit_head", "the audit log is append-only: DELETE on audit_head is refused"),
        ("TRUNCATE audit_head", "the audit log is append-only: TRUNCATE on audit_head is refused"),
        (
            "INSERT INTO audit_head VALUES (2, 0, '')",
            "the audit log is append-only: INSERT on audit_head is refused",
        ),
    ],
)
def test_nothing_stored_can_be_changed(statement: str, words: str, role: str) -> None:
    event = append()
    before = Event.objects.values().get()
    assert refused(statement, role) == words
    assert Event.objects.values().get() == before
    assert list(Head.objects.values()) == [{"id": 1, "seq": 1, "hash": event.hash}]


@ROLES
@pytest.mark.parametrize(
    ("seq", "previous", "hashed", "words"),
    [
        (3, None, None, "audit event 3 does not follow event 1"),
        (1, None, None, "audit event 1 does not follow event 1"),
        (2, "f" * 64, None, "audit event 2 does not follow event 1"),
        (2, None, "f" * 64, "audit event 2 has a wrong hash"),
    ],
    ids=["a gap", "a number twice", "a wrong previous hash", "a wrong hash"],
)
def test_only_the_next_link_can_be_appended(
    seq: int, previous: str | None, hashed: str | None, words: str, role: str
) -> None:
    first = append()
    previous = previous or first.hash
    values: list[str | int] = [seq, previous, hashed or link_hash(previous, "{}")]
    assert refused(COPY, role, values) == words
    assert list(Head.objects.values()) == [{"id": 1, "seq": 1, "hash": first.hash}]


@ROLES
def test_the_next_link_itself_is_appended(role: str) -> None:
    first = append()
    hashed = link_hash(first.hash, "{}")
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL session_replication_role = {role}")
        cursor.execute(COPY, [2, first.hash, hashed])
    assert list(Head.objects.values()) == [{"id": 1, "seq": 2, "hash": hashed}]
