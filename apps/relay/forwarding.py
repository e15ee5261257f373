"""Verbs on forwards: what the relay posted goes on to the dashboard that stood there before, byte for byte."""

import datetime
import random

import requests
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef

from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.services import Actor, Subject, record
from apps.core import clock, outbox
from apps.core.backoff import backoff_seconds
from apps.core.errors import Problem
from apps.core.wakeups import wake
from apps.relay.adoption import ForwardState
from apps.relay.models import Forward
from apps.relay.topics import FORWARD_PENDING

TIMEOUT_SECONDS = 10
KEPT_DAYS = 7
_SWEPT_AT_ONCE = 1_000
_RETRIED_STATUSES = frozenset({408, 425, 429})
_WAITING = (ForwardState.PENDING, ForwardState.SENDING)


def keep(*, repository_name: str, delivery_id: str, order_key: str, raw: bytes, now: datetime.datetime) -> Forward:
    """Keep a body for the dashboard, in the transaction that applies it; without its bytes where none is set."""
    is_wanted = bool(settings.HUD_FORWARD_URL)
    forward = Forward.objects.create(
        repository_name=repository_name,
        delivery_id=delivery_id,
        order_key=order_key,
        body=raw if is_wanted else b"",
        received_at=now,
        changed_at=now,
        due_at=now,
        state=ForwardState.PENDING if is_wanted else ForwardState.KEPT,
    )
    if is_wanted:
        wake(FORWARD_PENDING, [str(forward.pk)], now=now)
    return forward


def send(*, forward_pk: int, now: datetime.datetime) -> ForwardState | None:
    """Post one waiting body to the dashboard. Returns its new state; None when it was not its turn.

    No answer, 5xx, 408, 425, 429: pending again until core.backoff has passed. Any other refusal is given up with the
    dashboard's status.
    """
    earlier = Forward.objects.filter(order_key=OuterRef("order_key"), pk__lt=OuterRef("pk"), state__in=_WAITING)
    if not outbox.begin(Forward.objects.filter(~Exists(earlier), pk=forward_pk, due_at__lte=now), now=now):
        return None
    forward = Forward.objects.get(pk=forward_pk)
    error, asked = _post(bytes(forward.body))
    chance = random.random()  # noqa: S311  spreads load, keeps no secret
    wait = None if asked is None else backoff_seconds(forward.attempts, chance, asked=asked)
    if not error:
        state = ForwardState.SENT
    elif wait is None:
        state = ForwardState.GIVEN_UP
    else:
        state = ForwardState.PENDING
    _finish(forward, state=state, error=error, wait=wait or 0.0, now=clock.now())
    return state


def _post(body: bytes) -> tuple[str, float | None]:
    """Why the dashboard did not take it ('' where it did), and how long it asks to wait: None where asking again is
    no use, 0 where it does not say."""
    headers = {"Content-Type": "application/json", "x-hud-internal-bot": settings.HUD_FORWARD_KEY}
    try:
        answer = requests.post(
            settings.HUD_FORWARD_URL, data=body, headers=headers, timeout=TIMEOUT_SECONDS, allow_redirects=False
        )
    except requests.RequestException as problem:
        return f"the dashboard did not answer: {type(problem).__name__}", 0.0
    if 200 <= answer.status_code < 300:
        return "", None
    error = f"the dashboard answered {answer.status_code}"
    if answer.status_code < 500 and answer.status_code not in _RETRIED_STATUSES:
        return error, None
    asked = answer.headers.get("Retry-After", "")
    return error, float(asked) if asked.isascii() and asked.isdigit() else 0.0


@transaction.atomic
def _finish(forward: Forward, *, state: ForwardState, error: str, wait: float, now: datetime.datetime) -> None:
    values: dict[str, object] = {"state": state}
    if state is ForwardState.PENDING:
        values["due_at"] = now + datetime.timedelta(seconds=wait)
    elif state is ForwardState.SENT:
        values["body"] = b""
    mine = Forward.objects.filter(pk=forward.pk)
    is_mine = outbox.finish(mine, attempt=forward.attempts, error=error, now=now, **values)
    if is_mine and state is not ForwardState.PENDING:
        waiting = Forward.objects.filter(order_key=forward.order_key, state=ForwardState.PENDING).order_by("pk")
        wake(FORWARD_PENDING, [str(pk) for pk in waiting.values_list("pk", flat=True)[:1]], now=now)


@transaction.atomic
def resend_forward(*, forward: Forward, actor: Actor, now: datetime.datetime) -> Event:
    """Try a result that was given up again, with as many attempts as a new one.

    Raises Problem `forward_state`: it was not given up, its body is gone (KEPT_DAYS), no dashboard is set, or a newer
    result of the same job has gone out, which this one would undo.
    """
    moment = clock.real(now)
    job = Forward.objects.select_for_update().filter(order_key=forward.order_key).order_by("pk")
    rows = {row.pk: row for row in job.defer("body")}
    if refusal := _why_not_again(rows.get(forward.pk), list(rows.values())):
        raise Problem("forward_state", refusal)
    values = {"state": ForwardState.PENDING, "attempts": 0, "error": "", "due_at": moment, "changed_at": moment}
    if Forward.objects.filter(pk=forward.pk, state=ForwardState.GIVEN_UP).exclude(body=b"").update(**values) != 1:
        raise Problem("forward_state", f"Its body is gone: what was given up is kept for {KEPT_DAYS} days.")
    wake(FORWARD_PENDING, [str(forward.pk)], now=now)
    return record(
        action=Action.FORWARD_RESENT,
        actor=actor,
        subject=Subject("forward", str(forward.pk), str(forward)),
        summary=f"The result of {forward} is sent to the dashboard again",
        before={"state": ForwardState.GIVEN_UP.value, "attempts": forward.attempts, "error": forward.error},
        after={"state": ForwardState.PENDING.value},
        now=now,
        is_decision=False,
    )


def _why_not_again(forward: Forward | None, of_its_job: list[Forward]) -> str:
    """Why a result is not sent again; '' where it is. `of_its_job` are all results of its job, as they are now."""
    if forward is None:
        return "It is gone."
    if forward.state != ForwardState.GIVEN_UP:
        return f"It is {ForwardState(forward.state).label}: only what was given up is sent again."
    if not settings.HUD_FORWARD_URL:
        return "No dashboard is set: set ACCELHUB_HUD_FORWARD_URL first."
    out = (ForwardState.SENT, ForwardState.SENDING)
    if any(row.pk > forward.pk and row.state in out for row in of_its_job):
        return "A newer result of the same job has gone out: this one would undo it."
    return ""


@transaction.atomic
def sweep(*, now: datetime.datetime) -> int:
    """Wake what is due or lost its task; forget what was settled KEPT_DAYS ago, of what was given up the body only.
    Returns how many were woken."""
    died = outbox.abandoned(Forward.objects.all(), now=now)
    died.update(state=ForwardState.PENDING, due_at=now, error=outbox.LOST)
    old = now - datetime.timedelta(days=KEPT_DAYS)
    Forward.objects.filter(state__in=[ForwardState.SENT, ForwardState.KEPT], received_at__lt=old).delete()
    Forward.objects.filter(state=ForwardState.GIVEN_UP, received_at__lt=old).exclude(body=b"").update(body=b"")
    due = Forward.objects.filter(state=ForwardState.PENDING, due_at__lte=now).order_by("pk")
    keys = [str(pk) for pk in due.values_list("pk", flat=True)[:_SWEPT_AT_ONCE]]
    wake(FORWARD_PENDING, keys, now=now)
    return len(keys)
