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
from django.db.models.functions import TruncDate

from apps.core import rounds
from apps.core.backoff import ATTEMPTS_MAX, backoff_seconds
from apps.core.github import GitHubRefused, GitHubUnavailable, HookDelivery, RepositoryIdentity, client
from apps.core.wakeups import wake
from apps.relay import modes, policy
from apps.relay.enums import DispatchState
from apps.relay.models import Delivery, DeliveryLog, Dispatch, HubOutage, MissedDelivery, MissedState, UnreadLog
from apps.relay.topics import JOB_CHANGED

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
    """Read GitHub's log since the last comparison, remember what nobody has taken, and ask for it again. Returns how
    many were newly found missing. GitHub's silence is remembered, and the next comparison reads from the same place.

    The first comparison in a mode reads nothing: what was sent before went elsewhere, and others have acted on it.
    """
    if not modes.current().takes_webhooks:
        rounds.off()
    if begin(now=now) or not modes.current().takes_webhooks:
        return 0
    log_row, found, until = DeliveryLog.objects.filter(pk=1), 0, now - SETTLES
    state = log_row.get()
    since = max(now - LOOKED_BACK, state.begun_at, state.compared_to - OVERLAP)
    try:
        upstream = client().repository_identity(settings.UPSTREAM_REPO)
        logged, cursor = client().hook_deliveries(since=since)
        if cursor:
            UnreadLog.objects.create(since=since, until=min(one.at for one in logged), cursor=cursor)
        found = _remember(logged, upstream, now)
        log_row.update(compared_to=until, compared_at=now, error="")
        found += _read_on(upstream, now)
    except (GitHubRefused, GitHubUnavailable) as problem:
        log_row.update(compared_at=now, error=str(problem)[:500])
        rounds.undone(str(problem))
        return found
    ask_again(now=now)
    return found


@transaction.atomic
def begin(*, now: datetime.datetime) -> bool:
    """Begin the comparison anew where the hub's mode has changed; what the other mode still waited for is given up.
    Returns whether it began."""
    mode = modes.current()
    if DeliveryLog.objects.filter(pk=1, mode=mode.name).exists():
        return False
    values = {"mode": mode.name, "begun_at": now, "compared_to": now, "compared_at": now, "error": ""}
    DeliveryLog.objects.update_or_create(pk=1, defaults=values)
    UnreadLog.objects.update(is_forgotten=True)
    waiting = MissedDelivery.objects.filter(state=MissedState.MISSING)
    waiting.update(state=MissedState.LOST, error=f"the hub runs in the mode {mode.name} since {now:%Y-%m-%d %H:%M} UTC")
    return True


def _read_on(upstream: RepositoryIdentity, now: datetime.datetime) -> int:
    """Go on in the oldest stretch of the log that is still unread: GitHub forgets it first. Returns how many were newly
    found missing there. Raises GitHubUnavailable."""
    UnreadLog.objects.filter(until__lt=now - LOOKED_BACK).update(is_forgotten=True)
    part = UnreadLog.objects.filter(is_forgotten=False).order_by("until").first()
    if part is None:
        return 0
    try:
        logged, cursor = client().hook_deliveries(since=part.since, cursor=part.cursor)
    except GitHubRefused as refused:
        log.error("GitHub does not show its log from %s to %s any more: %s", part.since, part.until, refused)
        UnreadLog.objects.filter(pk=part.pk).update(is_forgotten=True)
        return 0
    found = _remember(logged, upstream, now)
    if cursor:
        UnreadLog.objects.filter(pk=part.pk).update(until=min(one.at for one in logged), cursor=cursor)
    else:
        part.delete()
    return found


def _is_ours(one: HookDelivery, upstream: RepositoryIdentity) -> bool:
    return (
        one.repository_id == upstream.github_id
        and one.event in policy.SUPPORTED_EVENTS
        and policy.is_remembered(one.event, one.action)
    )


@transaction.atomic
def _remember(logged: Iterable[HookDelivery], upstream: RepositoryIdentity, now: datetime.datetime) -> int:
    """Keep what is not stored and no attempt has brought to anybody, each with its outage. One comparison at a time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    ours = [one for one in logged if one.at <= now - SETTLES and _is_ours(one, upstream)]
    # A redelivery has the id of the first: what counts is when GitHub sent it first.
    first: dict[str, HookDelivery] = {}
    for one in sorted(ours, key=lambda one: one.at, reverse=True):
        first[one.delivery_id] = one
    stored = set(Delivery.objects.filter(delivery_id__in=first).values_list("delivery_id", flat=True))
    known = set(MissedDelivery.objects.filter(delivery_id__in=first).values_list("delivery_id", flat=True))
    taken = {one.delivery_id for one in ours if one.was_taken}
    missing = [one for one in first.values() if one.delivery_id not in stored | known | taken]
    outages = {}
    for one in sorted(missing, key=lambda one: one.at):
        outage = _outage_at(one.at)
        outages[outage.pk] = outage
        MissedDelivery.objects.create(
            delivery_id=one.delivery_id,
            outage=outage,
            github_id=one.github_id,
            event=one.event,
            delivered_at=one.at,
            due_at=now,
        )
    for outage in outages.values():
        _count_answers_anew(outage, now)
    return len(missing)


def _count_answers_anew(outage: HubOutage, now: datetime.datetime) -> None:
    """Have the days counted anew of dispatches whose answer the hub may have missed in this outage."""
    silent = datetime.timedelta(seconds=policy.SILENT_LIMIT_SECONDS)
    touched = Dispatch.objects.filter(
        state=DispatchState.SENT, sent_at__gte=outage.started_at - silent, sent_at__lte=outage.ended_at
    )
    days = touched.annotate(day=TruncDate("sent_at", tzinfo=datetime.UTC)).values_list("repository_id", "day")
    wake(JOB_CHANGED, sorted(f"{repository_id}:{day}" for repository_id, day in days.distinct()), now=now)


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
    """How far GitHub's log was compared; None: never yet, in this mode."""
    mode = modes.current()
    return DeliveryLog.objects.filter(pk=1, mode=mode.name).first() if mode.takes_webhooks else None


def unread_logs() -> QuerySet[UnreadLog]:
    """Stretches of GitHub's log that were not compared, newest first: what was missed in them is unknown."""
    return UnreadLog.objects.order_by("-until", "-pk")
