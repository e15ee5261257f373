"""Verbs on deliveries and dispatches: receive, fan out, send, sweep."""

import datetime
import json
import logging
import re
from typing import Any

from django.db import transaction
from django.db.models import F

from apps.core import clock
from apps.core.github import GitHubRefused, GitHubUnavailable, client
from apps.core.wakeups import wake
from apps.platforms.models import Repository
from apps.platforms.policy import UNLISTED
from apps.relay import graph, missed, modes, policy
from apps.relay.enums import DeliveryState, DispatchState
from apps.relay.models import Delivery, Dispatch
from apps.relay.topics import DELIVERY_RECEIVED, DISPATCH_PENDING

log = logging.getLogger(__name__)

ATTEMPTS_MAX = 5
RETRY_AFTER_SECONDS = 30
# A send is bounded by the client's timeout; one that is older than this has lost its worker.
SENDING_LOST_SECONDS = 120
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SHA = re.compile(r"[0-9a-f]{40}")


@transaction.atomic
def receive_delivery(*, delivery_id: str, event: str, body: dict[str, Any], raw: str, now: datetime.datetime) -> str:
    """Store a verified webhook of the upstream repository once. Returns `accepted`, `ignored` or `duplicate`.

    `raw` is the body's text as received: it is what downstreams get. An ignored event is remembered without it.
    """
    action = body.get("action")
    action = action if isinstance(action, str) else None
    is_dispatched = policy.is_dispatched(event, action)
    delivery, is_new = Delivery.objects.get_or_create(
        delivery_id=delivery_id,
        defaults={
            "event": event,
            "action": _clean(action, 40),
            "state": DeliveryState.RECEIVED if is_dispatched else DeliveryState.IGNORED,
            "received_at": now,
            "body": raw if is_dispatched else "",
            "is_late": missed.arrived_late(delivery_id, now=now),
            **_facts(event, body),
        },
    )
    if not is_new:
        return "duplicate"
    if is_dispatched:
        wake(DELIVERY_RECEIVED, [str(delivery.pk)], now=now)
        graph.note(delivery=delivery, body=body, now=now)
    return "accepted" if is_dispatched else "ignored"


def _facts(event: str, body: dict[str, Any]) -> dict[str, Any]:
    """What the hub itself reads of a webhook. A field of another type than GitHub documents is not there."""
    if event == policy.PUSH:
        return {"ref": _clean(body.get("ref"), 300), "head_sha": _sha(body.get("after"))}
    request = body.get("pull_request")
    if not isinstance(request, dict):
        return {}
    head = request.get("head")
    number = request.get("number", body.get("number"))
    is_number = isinstance(number, int) and not isinstance(number, bool) and 0 < number < 2**63
    return {
        "pr_number": number if is_number else None,
        "title": _clean(request.get("title"), 300),
        "head_sha": _sha(head.get("sha")) if isinstance(head, dict) else "",
        "ref": _clean(head.get("ref"), 300) if isinstance(head, dict) else "",
    }


def _clean(value: Any, cap: int) -> str:
    return _UNSTORABLE.sub("\ufffd", value)[:cap] if isinstance(value, str) else ""


def _sha(value: Any) -> str:
    return value if isinstance(value, str) and _SHA.fullmatch(value) else ""


@transaction.atomic
def fan_out(*, delivery_pk: int, now: datetime.datetime) -> int:
    """Make a dispatch to every repository that is listed and takes part in the event. Returns how many.

    A delivery is fanned out once, whoever asks how often.
    """
    moved = Delivery.objects.filter(pk=delivery_pk, state=DeliveryState.RECEIVED).update(state=DeliveryState.FANNED_OUT)
    if moved != 1:
        return 0
    dispatches = Dispatch.objects.bulk_create(
        [
            Dispatch(delivery_id=delivery_pk, repository_id=pk, created_at=now, changed_at=clock.real(now))
            for pk in recipients(delivery_pk)
        ]
    )
    wake(DISPATCH_PENDING, [str(dispatch.pk) for dispatch in dispatches], now=now)
    return len(dispatches)


def recipients(delivery_pk: int) -> list[int]:
    """The repositories (primary keys) that are listed and take part in a delivery's event."""
    event = Delivery.objects.values_list("event", flat=True).get(pk=delivery_pk)
    listed = Repository.objects.filter(level__gt=UNLISTED).order_by("pk").values_list("pk", "events")
    return [pk for pk, events in listed if policy.participates(events, event)]


def client_payload(delivery: Delivery) -> dict[str, Any]:
    """What a downstream gets with its repository_dispatch (docs/protocol.md, "Dispatch")."""
    return {
        "event_type": delivery.event,
        "delivery_id": delivery.delivery_id,
        "payload": json.loads(delivery.body),
    }


def send_dispatch(*, dispatch_pk: int, now: datetime.datetime) -> DispatchState | None:
    """Send one pending dispatch to GitHub. Returns its new state; None when it was not pending.

    Not reached: pending again, and the sweep tries later, ATTEMPTS_MAX times in all. Refused: given up, with GitHub's
    words. `now` starts the attempt; acceptance is stamped when GitHub has answered. A mode that dispatches nothing
    leaves it pending.
    """
    if not modes.current().dispatches:
        return None
    taken = Dispatch.objects.filter(pk=dispatch_pk, state=DispatchState.PENDING).update(
        state=DispatchState.SENDING, attempts=F("attempts") + 1, changed_at=clock.real(now)
    )
    if taken != 1:
        return None
    dispatch = Dispatch.objects.select_related("delivery", "repository").get(pk=dispatch_pk)
    error, state = "", DispatchState.SENT
    try:
        client().send_dispatch(
            dispatch.repository.full_name,
            event_type=dispatch.delivery.event,
            client_payload=client_payload(dispatch.delivery),
        )
    except GitHubUnavailable as problem:
        error = str(problem)
        state = DispatchState.PENDING if dispatch.attempts < ATTEMPTS_MAX else DispatchState.GIVEN_UP
    except GitHubRefused as problem:
        error, state = str(problem), DispatchState.GIVEN_UP
    finish_dispatch(dispatch_pk=dispatch_pk, attempt=dispatch.attempts, state=state, error=error, now=clock.now())
    return state


def finish_dispatch(
    *, dispatch_pk: int, attempt: int, state: DispatchState, error: str, now: datetime.datetime
) -> None:
    """Write how an attempt ended, unless the sweep has taken the dispatch back meanwhile. `now` is when it ended."""
    changed = Dispatch.objects.filter(pk=dispatch_pk, state=DispatchState.SENDING, attempts=attempt).update(
        state=state,
        error=_clean(error, 500),
        changed_at=clock.real(now),
        sent_at=now if state is DispatchState.SENT else None,
    )
    if changed != 1:
        log.warning("dispatch %s was taken back while it was sent", dispatch_pk)


@transaction.atomic
def sweep(*, now: datetime.datetime) -> int:
    """Wake what lost its task: deliveries not fanned out, dispatches not sent. Returns how many were woken."""
    stale = now - datetime.timedelta(seconds=RETRY_AFTER_SECONDS)
    lost = now - datetime.timedelta(seconds=SENDING_LOST_SECONDS)
    died = Dispatch.objects.filter(state=DispatchState.SENDING, changed_at__lt=lost)
    error = "the worker was lost while sending"
    died.filter(attempts__lt=ATTEMPTS_MAX).update(state=DispatchState.PENDING, error=error)
    died.filter(attempts__gte=ATTEMPTS_MAX).update(state=DispatchState.GIVEN_UP, error=error, changed_at=now)
    deliveries = Delivery.objects.filter(state=DeliveryState.RECEIVED, received_at__lt=stale)
    dispatches = Dispatch.objects.filter(state=DispatchState.PENDING, changed_at__lt=stale)
    woken = 0
    for topic, rows in ((DELIVERY_RECEIVED, deliveries), (DISPATCH_PENDING, dispatches)):
        keys = [str(pk) for pk in rows.values_list("pk", flat=True)[:10_000]]
        wake(topic, keys, now=now)
        woken += len(keys)
    return woken
