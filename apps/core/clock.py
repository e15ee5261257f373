"""The hub's one clock. Edges ask it once and pass `now` on; services and policy never look at a clock."""

import datetime

from django.utils import timezone


def now() -> datetime.datetime:
    """The current time, aware, UTC."""
    return timezone.now()
