"""The API's form of an event."""

from typing import Any

from django.conf import settings
from django.urls import reverse
from rest_framework import serializers

from apps.audit.models import Event
from apps.audit.selectors import body_of


class EventOut(serializers.Serializer[Any]):
    """The body of an event as the chain holds it, with its links and its page."""

    def to_representation(self, event: Event) -> dict[str, Any]:
        return body_of(event) | {
            "previous_hash": event.previous_hash,
            "hash": event.hash,
            "url": settings.BASE_URL + reverse("audit:decision", args=[event.seq]),
        }
