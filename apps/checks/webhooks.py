"""What checks read of a stored webhook. GitHub signed it; a field of another type than it documents is not there."""

import datetime
import json
from dataclasses import dataclass
from typing import Any

from apps.checks.policy import Told
from apps.core.text import storable
from apps.relay.checknames import device_of
from apps.relay.models import Delivery


def told_of(delivery: Delivery) -> Told:
    """What a webhook tells of its pull request. Where GitHub does not say when, it counts from its receipt."""
    body = _object(json.loads(delivery.body))
    pull = _object(body.get("pull_request"))
    labels = pull.get("labels")
    devices = {device_of(_text(_object(label).get("name"))) for label in (labels if isinstance(labels, list) else [])}
    return Told(
        at=_moment(pull.get("updated_at")) or delivery.received_at.replace(microsecond=0),
        action=delivery.action,
        is_open=delivery.action != "closed" and pull.get("state") != "closed",
        devices=frozenset(device for device in devices if device),
        label=device_of(_text(_object(body.get("label")).get("name"))),
    )


@dataclass(frozen=True)
class Asked:
    """Somebody pressed “re-run”: on one check run (`github_id`), or on all of a commit (`head_sha`)."""

    github_id: int
    head_sha: str
    by: str


def asked_of(delivery: Delivery) -> Asked:
    """What a `rerequested` webhook asks for. GitHub names no pull request of a fork there: none is read."""
    body = _object(json.loads(delivery.body))
    about = _object(body.get(delivery.event))
    number = about.get("id")
    return Asked(
        github_id=number if isinstance(number, int) and 0 < number < 2**63 else 0,
        head_sha=_text(about.get("head_sha"))[:40],
        by=_text(_object(body.get("sender")).get("login"))[:100],
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return storable(value) if isinstance(value, str) else ""


def _moment(value: Any) -> datetime.datetime | None:
    try:
        moment = datetime.datetime.fromisoformat(_text(value))
        return moment.astimezone(datetime.UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):  # a time with a zone may lie outside the years that there are
        return None
