"""Hand-written statements of the hot path, prepared once per connection: the server plans each only once.

Django's own cursors put values into the text of a statement, which PostgreSQL then parses and plans every time; of a
callback's time that was a fifth (docs/adr/0005). A pooler between hub and database must keep prepared statements
(PgBouncer does from 1.21 on, with max_prepared_statements).
"""

from typing import Any

import psycopg
from django.db import connection
from django.db.backends.utils import CursorWrapper


class _Cursor(psycopg.Cursor):
    """Values go beside the statement, never into it."""

    def execute(self, query: Any, params: Any = None, **_: Any) -> "_Cursor":
        return super().execute(query, params, prepare=True)


def prepared() -> CursorWrapper:
    """A cursor of Django's connection whose statements are prepared. Errors and counted queries are Django's own."""
    connection.ensure_connection()
    raw = connection.connection
    # Django's cursors never prepare, whatever this says. (The stubs of the makers name what they return.)
    raw.prepare_threshold = 0
    make = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    return make(_Cursor(raw))  # type: ignore[arg-type]
