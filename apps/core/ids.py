"""Public identifiers."""

import uuid

from uuid_utils.compat import uuid7


def public_id() -> uuid.UUID:
    """A new UUIDv7 (RFC 9562): safe to show in a URL, ordered by time, so its index grows at one end."""
    return uuid7()
