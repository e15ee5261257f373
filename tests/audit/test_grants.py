"""The hub's own role in PostgreSQL: with the grants it reads the log and appends to it, nothing else."""

import os
import secrets
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, ProgrammingError, connection, connections, transaction
from pytest_django import Settings

from apps.accounts.policy import Role
from apps.audit import grants, publishing, services
from apps.audit.grants import Powers
from apps.audit.models import Event, Head
from apps.core.clock import now
from apps.core.models import Wakeup
from tests.factories.checkpoints import seed
from tests.factories.events import event
from tests.factories.listing import user
from tests.factories.pages import Page
from tests.live import ClonedDatabase, administer

# Several roles of one cluster: each test run, and each process of it, has its own.
ROLE = f"hub_{os.getpid()}_{secrets.token_hex(4)}"


@pytest.fixture
def role(cloned_database: ClonedDatabase) -> Iterator[str]:
    """A role that may log in, and nothing else yet."""
    password = secrets.token_hex(16)
    administer(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{password}'")
    owner = {name: connection.settings_dict[name] for name in ("USER", "PASSWORD")}
    connection.settings_dict["HUB_PASSWORD"] = password
    try:
        yield ROLE
    finally:
        connection.close()
        connection.settings_dict.update(owner)
        del connection.settings_dict["HUB_PASSWORD"]
        with connection.cursor() as cursor:
            cursor.execute(f"DROP OWNED BY {ROLE}")
        connections.close_all()
        administer(f"DROP ROLE {ROLE}")


def become(role: str) -> None:
    """Go on as this role, over a connection of its own."""
    connection.close()
    connection.settings_dict.update(USER=role, PASSWORD=connection.settings_dict["HUB_PASSWORD"])


def command(*words: str) -> str:
    out = StringIO()
    call_command("audit", "grants", *words, stdout=out)
    return out.getvalue()


def test_what_is_printed_is_what_is_applied(role: str) -> None:
    assert command(role) == "".join(f"{statement};\n" for statement in grants.statements(role))
    assert grants.statements(role) == [
        f'GRANT USAGE ON SCHEMA "public" TO "{role}"',
        f'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "public" TO "{role}"',
        f'GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA "public" TO "{role}"',
        f'REVOKE ALL ON "audit_event", "audit_checkpoint", "audit_head" FROM "{role}", PUBLIC',
        f'GRANT SELECT, INSERT ON "audit_event", "audit_checkpoint" TO "{role}"',
        f'GRANT SELECT ON "audit_head" TO "{role}"',
    ]
    assert grants.powers(role) == Powers(role, ())  # nothing was granted so far
    for _ in range(2):  # after every migration
        assert command(role, "--apply") == f"{role} may read the log and append to it, nothing else\n"


FORBIDDEN = (
    "UPDATE audit_event SET body = body",
    "UPDATE audit_head SET seq = 0",
    "UPDATE audit_head SET id = 1",
    "UPDATE audit_checkpoint SET seq = 0",
    "DELETE FROM audit_event",
    "DELETE FROM audit_head",
    "DELETE FROM audit_checkpoint",
    "INSERT INTO audit_head VALUES (2, 0, '')",
    "TRUNCATE audit_event",
    "TRUNCATE audit_head",
    "TRUNCATE audit_checkpoint",
    "ALTER TABLE audit_event DISABLE TRIGGER ALL",
    "ALTER TABLE audit_event DISABLE TRIGGER USER",
    "ALTER TABLE audit_event ADD COLUMN x int",
    "ALTER TABLE audit_checkpoint DISABLE TRIGGER USER",
    "ALTER TABLE audit_head DISABLE TRIGGER USER",
    "DROP TABLE audit_event",
    "DROP TRIGGER audit_event_refuse ON audit_event",
    "CREATE TRIGGER x BEFORE INSERT ON audit_event FOR EACH ROW EXECUTE FUNCTION audit_refuse()",
    "CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "ALTER FUNCTION audit_append() SECURITY INVOKER",
    "SET session_replication_role = replica",
    "SELECT * FROM audit_head FOR UPDATE",
    "LOCK TABLE audit_event IN ACCESS EXCLUSIVE MODE",
    "CREATE TABLE public.audit_shadow (x int)",
)


def test_as_that_role_the_hub_appends_and_can_change_nothing(role: str, settings: Settings) -> None:
    settings.CHECKPOINT_KEY = seed()
    event("by the owner")
    command(role, "--apply")
    become(role)
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == (role,)
    made = event("by the hub's role")
    publishing.make(now=now())
    Wakeup.objects.create(topic="x", key="1", created_at=now())
    assert services.verify(now=now()).finding == ""
    before = list(Event.objects.values()), Head.objects.values().get()
    assert before[1] == {"id": 1, "seq": 2, "hash": made.hash}
    for statement in FORBIDDEN:
        with pytest.raises(DatabaseError) as caught, transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
        assert refused(caught.value), (statement, caught.value)
    assert (list(Event.objects.values()), Head.objects.values().get()) == before
    assert command() == f"{role} may read the log and append to it, nothing else\n"


def refused(error: DatabaseError) -> bool:
    """Whether it was for want of a privilege (42501), no other reason."""
    return isinstance(error, ProgrammingError) and getattr(error.__cause__, "sqlstate", "") == "42501"


def test_a_shadow_of_the_head_misleads_no_function(role: str) -> None:
    """Functions that run as the owner look up names where nobody can put anything in front."""
    event()
    command(role, "--apply")
    become(role)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE audit_head (id smallint, seq bigint, hash text)")
        cursor.execute("INSERT INTO audit_head VALUES (1, 41, repeat('f', 64))")
        cursor.execute("SELECT seq FROM audit_lock_head()")
        assert cursor.fetchone() == (1,)
    assert event().seq == 2


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["GRANT UPDATE (body) ON audit_event TO {role}"], "may update audit_event"),
        (["GRANT DELETE ON audit_head TO {role}"], "may delete from audit_head"),
        (
            ["GRANT TRUNCATE, TRIGGER ON audit_checkpoint TO {role}"],
            "may put triggers on audit_checkpoint, may truncate audit_checkpoint",
        ),
        (["ALTER TABLE audit_event OWNER TO {role}"], "owns audit_event or may become their owner"),
        (["GRANT UPDATE ON audit_event TO PUBLIC"], "may update audit_event"),
        (["ALTER FUNCTION audit_refuse() OWNER TO {role}"], "owns the functions of the triggers"),
    ],
)
def test_whatever_goes_beyond_is_said(role: str, statements: list[str], said: str) -> None:
    command(role, "--apply")
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        owner = cursor.fetchone()[0]
        try:
            for statement in statements:
                cursor.execute(statement.format(role=role))
            become(role)
            assert command() == f"{role} could rewrite the log: it {said}\n"
        finally:
            restore(owner)


def restore(owner: str) -> None:
    """What was given to the role goes back before it is dropped."""
    connection.close()
    connection.settings_dict["USER"] = owner
    with connection.cursor() as cursor:
        cursor.execute(f'REASSIGN OWNED BY {ROLE} TO "{owner}"')


@pytest.mark.django_db
def test_the_embedded_default_is_said_honestly() -> None:
    found = grants.powers()
    assert found.beyond == ("is a superuser",)
    assert command() == f"{found.role} could rewrite the log: it is a superuser\n"


@pytest.mark.django_db
def test_a_role_that_is_not_there_is_refused() -> None:
    with pytest.raises(CommandError) as caught:
        command("no'body")
    assert str(caught.value) == 'There is no role "no\'body": make it with CREATE ROLE … LOGIN.'


def test_only_the_owner_may_grant(role: str) -> None:
    command(role, "--apply")
    become(role)
    with pytest.raises(CommandError) as caught:
        command(role, "--apply")
    assert str(caught.value) == f"{role} does not own the log's tables: run it as who migrates."


def test_staff_see_it(role: str, client: Any) -> None:
    client.force_login(user(Role.OPERATOR))
    said = Page(client.get("/staff/health/")).facts["log"]["The hub's database role"]
    assert said.startswith("▲ could rewrite the log ")
    assert said.endswith(" is a superuser")
    command(role, "--apply")
    become(role)
    assert Page(client.get("/staff/health/")).facts["log"]["The hub's database role"] == (
        f"● reads and appends {role} can do nothing else to the log"
    )
