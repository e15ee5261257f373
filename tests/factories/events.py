"""Events of the log."""

from typing import Any

from django.db import transaction

from apps.audit.enums import Action, ActorKind
from apps.audit.models import Event
from apps.audit.services import Actor, Subject, record
from tests.factories.jobs import days_ago


def event(summary: str = "acme/torch raised from L1 to L2", **values: Any) -> Event:
    """Append one event, four days old: by default the user ada's decision about acme/torch."""
    given: dict[str, Any] = {
        "action": Action.LEVEL_CHANGED,
        "actor": Actor(ActorKind.USER, "u-1", "ada"),
        "subject": Subject("repository", "r-1", "acme/torch"),
        "now": days_ago(4),
    }
    with transaction.atomic():
        return record(summary=summary, **(given | values))
