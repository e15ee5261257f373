"""Missed webhooks: GitHub does not send one again by itself, but its log tells which the hub did not get.

Source: GitHub's `GET /app/hook/deliveries` and `POST /app/hook/deliveries/{id}/attempts`, with the App's own token.
"""

import datetime
import logging
import random
from collections.abc import Iterable

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Q, QuerySet

from apps.core.backoff import ATTEMPTS_MAX, backoff_seconds
from apps.core.github import GitHubRefused, GitHubUnavailable, HookDelivery, client
from apps.relay import policy
from apps.relay.models import Delivery, DeliveryLog, HubOutage, MissedDelivery, MissedState

log = logging.getLogger(__name__)

# What GitHub has just sent may still be on its way in.
SETTLES = datetime.timedelta(minutes=2)
# A comparison looks back further than the last one: GitHub may log a delivery late.
OVERLAP = datetime.timedelta(minutes=30)
# GitHub keeps its log for three days.
LOOKED_BACK = datetime.timedelta(days=3)
# Webhooks missed within this time of one another were missed in one outage.
ONE_OUTAGE = datetime.timedelta(minutes=15)
ASKED_AT_ONCE = 100
_LOCK = 7_014


def compare(*, now: datetime.datetime) -> int:
    """Read GitHub's log since the last comparison, remember what is not stored, and ask for it again. Returns how many
    were newly found missing. GitHub's silence is remembered, and the next comparison reads from the same place."""
    state = DeliveryLog.objects.filter(pk=1).first()
    earliest = now - LOOKED_BACK
    since = max(earliest, state.compared_to - OVERLAP) if state else earliest
    until = now - SETTLES
    try:
        upstream = client().repository_identity(settings.UPSTREAM_REPO)
        logged, is_whole = client().hook_deliveries(since=since)
        error = "" if is_whole else "the log has more deliveries than are read at once"
    except (GitHubRefused, GitHubUnavailable) as problem:
        DeliveryLog.objects.update_or_create(
            pk=1,
            defaults={"compared_at": now, "error": str(problem)[:500]},
            create_defaults={"compared_to": since, "compared_at": now, "error": str(problem)[:500]},
        )
        return 0
    ours = [
        one
        for one in logged
        if one.repository_id == upstream.github_id
        and one.event in policy.SUPPORTED_EVENTS
        and policy.is_remembered(one.event, one.action)
        and one.at <= until
    ]
    found = _remember(ours, now)
    DeliveryLog.objects.update_or_create(pk=1, defaults={"compared_to": until, "compared_at": now, "error": error})
    if error:
        log.error("%s: what was sent before %s was not compared", error, min(one.at for one in logged))
    ask_again(now=now)
    return found


@transaction.atomic
def _remember(logged: Iterable[HookDelivery], now: datetime.datetime) -> int:
    """Keep what is not stored, each with its outage. One comparison at a time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    # A redelivery has the id of the first: what counts is when GitHub sent it first.
    first: dict[str, HookDelivery] = {}
    for one in sorted(logged, key=lambda one: one.at, reverse=True):
        first[one.delivery_id] = one
    stored = set(Delivery.objects.filter(delivery_id__in=first).values_list("delivery_id", flat=True))
    known = set(MissedDelivery.objects.filter(delivery_id__in=first).values_list("delivery_id", flat=True))
    missing = [one for one in first.values() if one.delivery_id not in stored | known]
    for one in sorted(missing, key=lambda one: one.at):
        MissedDelivery.objects.create(
            delivery_id=one.delivery_id,
            outage=_outage_at(one.at),
            github_id=one.github_id,
            event=one.event,
            delivered_at=one.at,
            due_at=now,
        )
    return len(missing)


def _outage_at(at: datetime.datetime) -> HubOutage:
    """The outage that a moment belongs to, made or stretched where needed."""
    near = HubOutage.objects.filter(started_at__lte=at + ONE_OUTAGE, ended_at__gte=at - ONE_OUTAGE)
    outage = near.order_by("started_at").first()
    if outage is None:
        return HubOutage.objects.create(started_at=at, ended_at=at)
    outage.started_at, outage.ended_at = min(outage.started_at, at), max(outage.ended_at, at)
    outage.save(update_fields=["started_at", "ended_at"])
    return outage


def ask_again(*, now: datetime.datetime) -> int:
    """Ask GitHub to send again what is missing and due, ASKED_AT_ONCE at most; after ATTEMPTS_MAX times it is lost.
    Returns how many were asked for."""
    waiting = MissedDelivery.objects.filter(state=MissedState.MISSING, due_at__lte=now).order_by("delivered_at", "pk")
    asked = 0
    for row in waiting[:ASKED_AT_ONCE]:
        if row.attempts >= ATTEMPTS_MAX:
            MissedDelivery.objects.filter(pk=row.pk, state=MissedState.MISSING).update(state=MissedState.LOST)
            continue
        # Taken before it is asked for: two tasks ask once.
        taken = MissedDelivery.objects.filter(pk=row.pk, state=MissedState.MISSING, attempts=row.attempts)
        if taken.update(attempts=row.attempts + 1, due_at=now + _time_to_come(row.attempts + 1)) != 1:
            continue
        error = ""
        try:
            client().redeliver(row.github_id)
            asked += 1
        except (GitHubRefused, GitHubUnavailable) as problem:
            error = str(problem)[:500]
        MissedDelivery.objects.filter(pk=row.pk).update(error=error)
    return asked


def _time_to_come(attempt: int) -> datetime.timedelta:
    """How long what was asked for so often has time to come before it is asked for again, or is lost."""
    settles = SETTLES.total_seconds()
    wait = backoff_seconds(attempt, random.random(), asked=settles)  # noqa: S311  spreads load, keeps no secret
    return datetime.timedelta(seconds=wait or settles)


def arrived_late(delivery_id: str, *, now: datetime.datetime) -> bool:
    """Whether a delivery that is being stored was missed when GitHub first sent it; then it is recovered now."""
    awaited = MissedDelivery.objects.filter(delivery_id=delivery_id).exclude(state=MissedState.RECOVERED)
    return awaited.update(state=MissedState.RECOVERED, recovered_at=now) == 1


# --- reads --------------------------------------------------------------------------------------------------------


def outages() -> QuerySet[HubOutage]:
    """Every outage, newest first, each with how many webhooks were `missed_count`, `recovered_count`, `lost_count`."""
    return HubOutage.objects.annotate(
        missed_count=Count("missed"),
        recovered_count=Count("missed", filter=Q(missed__state=MissedState.RECOVERED)),
        lost_count=Count("missed", filter=Q(missed__state=MissedState.LOST)),
    ).order_by("-started_at", "-pk")


def outages_since(start: datetime.datetime) -> int:
    """How many outages reach into the time from `start` on."""
    return HubOutage.objects.filter(ended_at__gte=start).count()


def delivery_log() -> DeliveryLog | None:
    """How far GitHub's log was compared; None: never yet."""
    return DeliveryLog.objects.filter(pk=1).first()
