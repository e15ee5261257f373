"""Verbs on deliveries: receive, fan out. What becomes of their dispatches stands in outbox.py."""

import datetime
import json
import re
from typing import Any

from django.db import transaction

from apps.core import clock
from apps.core.text import storable
from apps.core.wakeups import wake
from apps.relay import graph, missed, policy
from apps.relay.enums import DeliveryState
from apps.relay.models import Delivery, Dispatch, Omission
from apps.relay.selectors import wishes_of_listed
from apps.relay.topics import DELIVERY_FOR_CHECKS, DELIVERY_RECEIVED, DISPATCH_PENDING

_SENTENCE_MAX = 500
_SHA = re.compile(r"[0-9a-f]{40}")


@transaction.atomic
def receive_delivery(*, delivery_id: str, event: str, body: dict[str, Any], raw: str, now: datetime.datetime) -> str:
    """Store a verified webhook of the upstream repository once. Returns `accepted`, `ignored` or `duplicate`.

    `raw` is the body's text as received: it is what downstreams get. An ignored event is remembered without it.
    """
    action = body.get("action")
    action = action if isinstance(action, str) else None
    is_dispatched = policy.is_dispatched(event, action)
    is_handled = policy.concerns_checks_alone(event, action, _label(body))
    is_ignored = not is_dispatched and not is_handled
    if not policy.is_remembered(event, action):
        return "ignored"
    waits = DeliveryState.RECEIVED if is_dispatched else DeliveryState.HANDLED
    delivery, is_new = Delivery.objects.get_or_create(
        delivery_id=delivery_id,
        defaults={
            "event": event,
            "action": clean(action, 40),
            "state": DeliveryState.IGNORED if is_ignored else waits,
            "received_at": now,
            "body": "" if is_ignored else raw,
            "is_late": missed.arrived_late(delivery_id, now=now),
            **_facts(event, body),
        },
    )
    if not is_new:
        return "duplicate"
    if is_dispatched:
        wake(DELIVERY_RECEIVED, [str(delivery.pk)], now=now)
        graph.note(delivery=delivery, body=body, now=now)
    if not is_ignored and event != policy.PUSH:
        wake(DELIVERY_FOR_CHECKS, [str(delivery.pk)], now=now)
    return "ignored" if is_ignored else "accepted"


def _label(body: dict[str, Any]) -> str:
    label = body.get("label")
    name = label.get("name") if isinstance(label, dict) else None
    return name if isinstance(name, str) else ""


def _facts(event: str, body: dict[str, Any]) -> dict[str, Any]:
    """What the hub itself reads of a webhook. A field of another type than GitHub documents is not there."""
    if event == policy.PUSH:
        return {"ref": clean(body.get("ref"), 300), "head_sha": _sha(body.get("after"))}
    request = body.get("pull_request")
    if not isinstance(request, dict):
        return {}
    head = request.get("head")
    number = request.get("number", body.get("number"))
    is_number = isinstance(number, int) and not isinstance(number, bool) and 0 < number < 2**63
    return {
        "pr_number": number if is_number else None,
        "title": clean(request.get("title"), 300),
        "head_sha": _sha(head.get("sha")) if isinstance(head, dict) else "",
        "ref": clean(head.get("ref"), 300) if isinstance(head, dict) else "",
    }


def clean(value: Any, cap: int) -> str:
    """The text as PostgreSQL can store it, at most `cap` characters; '' for what is no text."""
    return storable(value, cap) if isinstance(value, str) else ""


def _sha(value: Any) -> str:
    return value if isinstance(value, str) and _SHA.fullmatch(value) else ""


@transaction.atomic
def fan_out(*, delivery_pk: int, now: datetime.datetime) -> int:
    """Make a dispatch to every listed repository that takes part in the event, and note why the others do not.
    Returns how many dispatches.

    A delivery is fanned out once, whoever asks how often.
    """
    moved = Delivery.objects.filter(pk=delivery_pk, state=DeliveryState.RECEIVED).update(state=DeliveryState.FANNED_OUT)
    if moved != 1:
        return 0
    moment = clock.real(now)
    sent_to, kept_from = recipients(Delivery.objects.get(pk=delivery_pk), now=now)
    dispatches = Dispatch.objects.bulk_create(
        [
            Dispatch(
                delivery_id=delivery_pk,
                repository_id=repository_id,
                created_at=now,
                changed_at=moment,
                next_attempt_at=moment,
                woken_at=moment,
            )
            for repository_id in sent_to
        ]
    )
    Omission.objects.bulk_create(
        [
            Omission(
                delivery_id=delivery_pk,
                repository_id=repository_id,
                rule=not_sent.rule,
                sentence=clean(not_sent.sentence, _SENTENCE_MAX),
            )
            for repository_id, not_sent in kept_from.items()
        ]
    )
    wake(DISPATCH_PENDING, [str(dispatch.pk) for dispatch in dispatches], now=now)
    return len(dispatches)


def recipients(delivery: Delivery, *, now: datetime.datetime) -> tuple[list[int], dict[int, policy.NotSent]]:
    """The listed repositories (primary keys) that take part in a delivery, and of the others why they do not."""
    occasion = _occasion(delivery)
    wishing = wishes_of_listed(now=now, pr_number=delivery.pr_number)
    asked = [(one.repository_id, policy.takes_part(occasion, one.wishes)) for one in wishing]
    sent_to = [repository_id for repository_id, not_sent in asked if not_sent is None]
    return sent_to, {repository_id: not_sent for repository_id, not_sent in asked if not_sent is not None}


def _occasion(delivery: Delivery) -> policy.Occasion:
    body = json.loads(delivery.body)
    ref, labels = body.get("ref"), []
    if delivery.event == policy.PULL_REQUEST:
        request = body.get("pull_request")
        request = request if isinstance(request, dict) else {}
        base, given = request.get("base"), request.get("labels")
        ref = base.get("ref") if isinstance(base, dict) else None
        ref = f"refs/heads/{ref}" if isinstance(ref, str) else None
        labels = [label.get("name") for label in given if isinstance(label, dict)] if isinstance(given, list) else []
    return policy.Occasion(
        event=delivery.event,
        action=delivery.action,
        delivery_id=delivery.delivery_id,
        ref=ref if isinstance(ref, str) else "",
        labels=tuple(label for label in labels if isinstance(label, str)),
    )
