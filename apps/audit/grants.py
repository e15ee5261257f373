"""What PostgreSQL lets the hub's own role do to the log, and the statements that leave it reading and appending.

Triggers refuse changes whoever is connected, but who owns a table can switch its triggers off. So in production the
tables belong to one role, which only migrates, and the hub runs as another.
"""

from dataclasses import dataclass

from django.db import connection
from psycopg import sql

APPENDED = ("audit_event", "audit_checkpoint")
HEAD = "audit_head"
GUARDED = (*APPENDED, HEAD)
# Functions that the log's triggers run, and the one that locks the head.
FUNCTIONS = (
    *("audit_refuse", "audit_append", "audit_move_head", "audit_head_moves_with_events"),
    *("audit_append_checkpoint", "audit_lock_head"),
)


@dataclass(frozen=True)
class Powers:
    """A role, and each thing that it could do to the log beyond reading and appending, as the end of “it …”."""

    role: str
    beyond: tuple[str, ...]

    @property
    def only_appends(self) -> bool:
        return not self.beyond


_POWERS = """
WITH guarded AS (
    SELECT c.oid, c.relname, c.relowner FROM pg_class c
    WHERE c.relname = ANY(%(tables)s) AND c.relnamespace = current_schema()::regnamespace
), functions AS (
    SELECT p.proowner FROM pg_proc p
    WHERE p.proname = ANY(%(functions)s) AND p.pronamespace = current_schema()::regnamespace
)
SELECT 1, 'is a superuser' FROM pg_roles WHERE rolname = %(role)s AND rolsuper
UNION SELECT 2, 'owns ' || string_agg(relname, ', ' ORDER BY relname) || ' or may become their owner' FROM guarded
    WHERE pg_has_role(%(role)s, relowner, 'MEMBER') HAVING count(*) > 0
UNION SELECT 3, 'owns the functions of the triggers' FROM functions WHERE pg_has_role(%(role)s, proowner, 'MEMBER')
UNION SELECT 4, 'owns the schema and could drop its tables' FROM pg_namespace
    WHERE oid = current_schema()::regnamespace AND pg_has_role(%(role)s, nspowner, 'MEMBER')
UNION SELECT 5, 'may ' || words || ' ' || relname
    FROM guarded, (VALUES ('DELETE', 'delete from'), ('TRUNCATE', 'truncate'), ('TRIGGER', 'put triggers on')) AS t (
        privilege, words
    ) WHERE has_table_privilege(%(role)s, oid, privilege)
UNION SELECT 6, 'may update ' || relname FROM guarded WHERE has_any_column_privilege(%(role)s, oid, 'UPDATE')
ORDER BY 1, 2
"""


def powers(role: str = "") -> Powers:
    """What a role could do to the log; without a name the one that we are connected as."""
    with connection.cursor() as cursor:
        name = role or _current_role()
        cursor.execute(_POWERS, {"role": name, "tables": list(GUARDED), "functions": list(FUNCTIONS)})
        found = cursor.fetchall()
    # A superuser may do everything, an owner everything with what is theirs: what follows from that is not repeated.
    last = {1: 1, 2: 4}.get(found[0][0], 6) if found else 6
    return Powers(name, tuple(words for rank, words in found if rank <= last))


def exists(role: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
        return cursor.fetchone() is not None


def may_grant() -> bool:
    """Whether whoever we are connected as may act for the owner of the log's tables: PostgreSQL only warns others."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT bool_and(pg_has_role(current_user, relowner, 'MEMBER')) FROM pg_class "
            "WHERE relname = ANY(%s) AND relnamespace = current_schema()::regnamespace",
            [list(GUARDED)],
        )
        return bool(cursor.fetchone()[0])


def statements(role: str) -> list[str]:
    """What the tables' owner runs after every migration, so that the hub can run as `role`: all of its tables to work
    with, and the log to read and append to."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        names = {"role": sql.Identifier(role), "schema": sql.Identifier(cursor.fetchone()[0])}
        appended = sql.SQL(", ").join(map(sql.Identifier, APPENDED))
        guarded = sql.SQL(", ").join(map(sql.Identifier, GUARDED))
        wanted = (
            "GRANT USAGE ON SCHEMA {schema} TO {role}",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
            "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
            "REVOKE ALL ON {guarded} FROM {role}, PUBLIC",
            "GRANT SELECT, INSERT ON {appended} TO {role}",
            "GRANT SELECT ON {head} TO {role}",
        )
        names |= {"head": sql.Identifier(HEAD)}
        return [
            sql.SQL(text).format(**names, guarded=guarded, appended=appended).as_string(cursor.connection)
            for text in wanted
        ]


def apply(role: str) -> None:
    """Run the statements, in the caller's transaction. The tables' owner may."""
    wanted = statements(role)
    with connection.cursor() as cursor:
        for statement in wanted:
            cursor.execute(statement)


def _current_role() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        return cursor.fetchone()[0]
