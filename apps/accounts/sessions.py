"""Sessions in the database, each with whose it is, whatever a cookie says."""

from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import VALID_KEY_CHARS
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessions


class SessionStore(DatabaseSessions):
    """Django's own, except that a key which no server made is no key: a cookie may spell NUL, PostgreSQL may not."""

    @classmethod
    def get_model_class(cls) -> Any:
        from apps.accounts.models import UserSession  # settings name this module before models may load

        return UserSession

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        session: Any = super().create_model_instance(data)
        session.user_id = data.get(SESSION_KEY)
        return session

    def _validate_session_key(self, key: str) -> bool:
        is_well_formed: bool = super()._validate_session_key(key)  # type: ignore[misc]  # the stubs leave it out
        return is_well_formed and set(key) <= set(VALID_KEY_CHARS)
