"""The outbox, where dispatches are on their way to GitHub: claim, send, wait, give up, send again; and the sweep."""

import datetime
import logging
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KT

from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.services import Actor, Subject, record
from apps.core import clock
from apps.core.backoff import ATTEMPTS_MAX, backoff_seconds
from apps.core.errors import Problem
from apps.core.github import GitHubRefused, GitHubUnavailable, client
from apps.core.outbox import LOST, SENDING_LOST_SECONDS, abandoned, finish
from apps.core.wakeups import wake
from apps.platforms.models import Participation
from apps.platforms.policy import UNLISTED
from apps.platforms.selectors import open_windows
from apps.relay import modes, moves, policy
from apps.relay.enums import DeliveryState, DispatchState, JobStatus
from apps.relay.models import Callback, Delivery, Dispatch, Job
from apps.relay.payload import client_payload
from apps.relay.topics import DELIVERY_RECEIVED, DISPATCH_PENDING

log = logging.getLogger(__name__)

# A task that was asked for so long ago, and has not come, is asked for again.
TASK_LOST_SECONDS = 30
# How far the clocks of two machines of one hub may be apart.
CLOCK_SKEW = datetime.timedelta(seconds=2)
# How often a dispatch that waits for the end of a maintenance window is looked at.
MAINTENANCE_LOOK = datetime.timedelta(minutes=5)
WOKEN_AT_ONCE = 10_000
# So many have a task that the sweep asked for and that may still come: a long queue is not filled up with more of them.
IN_HAND_MAX = 500
UNLISTED_MEANWHILE = "the repository is no longer listed: list it again, then send again"


# --- sending ----------------------------------------------------------------------------------------------------


def send_dispatch(*, dispatch_pk: int, now: datetime.datetime, chance: float) -> DispatchState | None:
    """Send one dispatch whose time has come. Returns its new state; None when it was not its turn.

    Not reached (5xx, no answer, a rate limit): pending again until core.backoff has passed, which `chance`
    (0 to 1) decides with. Refused: given up, with GitHub's words. `now` starts the attempt; acceptance, from which
    queue time counts, is stamped when GitHub has answered. A mode that dispatches nothing leaves it pending.
    """
    dispatch = _claim(dispatch_pk, clock.real(now)) if modes.current().dispatches else None
    if dispatch is None:
        return None
    error, state, wait = "", DispatchState.SENT, None
    try:
        _send(dispatch, now)
    except GitHubUnavailable as problem:
        failed = dispatch.attempts - (dispatch.attempts_allowed - ATTEMPTS_MAX)
        wait = backoff_seconds(failed, chance, asked=problem.wait_seconds)
        error, state = str(problem), DispatchState.GIVEN_UP if wait is None else DispatchState.PENDING
    except GitHubRefused as problem:
        error, state = str(problem), DispatchState.GIVEN_UP
    finish_dispatch(
        dispatch_pk=dispatch_pk, attempt=dispatch.attempts, state=state, error=error, wait_seconds=wait, now=clock.now()
    )
    return state


def _send(dispatch: Dispatch, now: datetime.datetime) -> None:
    """Send it under its repository's name, or under the new one where GitHub redirects that. Raises GitHubUnavailable
    or GitHubRefused."""
    what: dict[str, Any] = {"event_type": dispatch.delivery.event, "client_payload": client_payload(dispatch, now=now)}
    try:
        client().send_dispatch(dispatch.repository.full_name, **what)
    except GitHubRefused as refused:
        if refused.status not in moves.MOVED_STATUSES:
            raise
        name = moves.new_name_of(dispatch.repository, status=refused.status, now=now)
        client().send_dispatch(name, **what)


def finish_dispatch(
    *,
    dispatch_pk: int,
    attempt: int,
    state: DispatchState,
    error: str,
    now: datetime.datetime,
    wait_seconds: float | None = None,
) -> None:
    """Write how an attempt ended, unless the sweep has taken the dispatch back meanwhile. `now` is when it ended;
    a pending one is tried again `wait_seconds` later."""
    moment = clock.real(now)
    is_written = finish(
        Dispatch.objects.filter(pk=dispatch_pk),
        attempt=attempt,
        error=error,
        now=now,
        state=state,
        sent_at=now if state is DispatchState.SENT else None,
        next_attempt_at=None if wait_seconds is None else moment + datetime.timedelta(seconds=wait_seconds),
    )
    if not is_written:
        log.warning("dispatch %s was taken back while it was sent", dispatch_pk)


@transaction.atomic
def _claim(dispatch_pk: int, now: datetime.datetime) -> Dispatch | None:
    """Take a due dispatch for one attempt; None where it is not due, taken, or has to wait or end without one."""
    dispatch = (
        Dispatch.objects.select_for_update(of=("self",), skip_locked=True)
        .select_related("delivery", "repository__participation")
        .annotate(maintenance_until=_window_end(now))
        .filter(pk=dispatch_pk, state=DispatchState.PENDING, next_attempt_at__lte=now + CLOCK_SKEW)
        .first()
    )
    if dispatch is None:
        return None
    if dispatch.repository.level == UNLISTED:
        _set(dispatch, state=DispatchState.GIVEN_UP, next_attempt_at=None, error=UNLISTED_MEANWHILE, changed_at=now)
        return None
    if until := dispatch.maintenance_until:
        error = f"waits for the end of the repository's maintenance at {until:%Y-%m-%d %H:%M} UTC"
        # A window may be ended early.
        _set(dispatch, next_attempt_at=min(until, now + MAINTENANCE_LOOK), woken_at=None, error=error)
        return None
    if (most := _most_in_flight(dispatch)) is not None and _taken_places(dispatch, now) >= most:
        _set(dispatch, next_attempt_at=None, woken_at=None, error=f"waits: the repository takes {most} at a time")
        return None
    _set(
        dispatch,
        state=DispatchState.SENDING,
        attempts=dispatch.attempts + 1,
        next_attempt_at=None,
        woken_at=None,
        changed_at=now,
    )
    return dispatch


def _set(dispatch: Dispatch, **values: object) -> None:
    """Write columns of a dispatch that this transaction has locked."""
    Dispatch.objects.filter(pk=dispatch.pk).update(**values)
    for name, value in values.items():
        setattr(dispatch, name, value)


# --- how many at once -------------------------------------------------------------------------------------------


def _window_end(now: datetime.datetime) -> Subquery:
    """Of a dispatch: the end of its repository's maintenance window that is open now."""
    return Subquery(open_windows(now=now).filter(repository=OuterRef("repository")).values("ends_at")[:1])


def _most_in_flight(dispatch: Dispatch) -> int | None:
    """How many dispatches the repository takes at once; None: any number. Where there is a limit, whoever asks is alone
    with the repository until its transaction ends."""
    chosen = getattr(dispatch.repository, "participation", None)
    if chosen is None or chosen.max_in_flight is None:
        return None
    if not policy.is_answered(dispatch.delivery.event, dispatch.delivery.action):
        return None
    return Participation.objects.select_for_update().get(pk=chosen.pk).max_in_flight


def _taken_places(dispatch: Dispatch, now: datetime.datetime) -> int:
    """Those in flight, and those before this one in the line."""
    before = _answered(Dispatch.objects.filter(repository=dispatch.repository_id, state=DispatchState.PENDING)).filter(
        Q(next_attempt_at=None) | Q(next_attempt_at__lte=now), pk__lt=dispatch.pk
    )
    return in_flight(dispatch.repository_id, now=now).count() + before.count()


def in_flight(repository_id: int, *, now: datetime.datetime) -> QuerySet[Dispatch]:
    """A repository's dispatches that were sent and not answered to the end: no job yet, or one in progress. At L1,
    where no jobs are kept: no completed callback. After IN_FLIGHT_HOURS one counts no longer."""
    since = now - datetime.timedelta(hours=policy.IN_FLIGHT_HOURS)
    jobs = Job.objects.filter(dispatch=OuterRef("pk"))
    told_privately = Callback.objects.alias(about=KT("report__delivery_id")).filter(
        repository=OuterRef("repository"),
        job=None,
        received_at__gt=since,
        report__status=JobStatus.COMPLETED,
        about=OuterRef("delivery__delivery_id"),
    )
    ended = (Exists(jobs) & ~Exists(jobs.filter(status=JobStatus.IN_PROGRESS))) | Exists(told_privately)
    sent = Q(state=DispatchState.SENT, sent_at__gt=since) & ~ended
    return _answered(Dispatch.objects.filter(Q(state=DispatchState.SENDING) | sent, repository=repository_id))


def _answered(dispatches: QuerySet[Dispatch]) -> QuerySet[Dispatch]:
    """Without those that nobody is expected to answer: they take no place."""
    for event, action in policy.UNANSWERED:
        dispatches = dispatches.exclude(delivery__event=event, delivery__action=action)
    return dispatches


def release(*, now: datetime.datetime) -> int:
    """Let dispatches that wait for a place go, the oldest first, as far as places are free. Returns how many."""
    waiting = Dispatch.objects.filter(state=DispatchState.PENDING, next_attempt_at=None)
    repositories = list(waiting.order_by().values_list("repository", flat=True).distinct())
    return sum(_release_to(repository_id, now) for repository_id in repositories)


@transaction.atomic
def _release_to(repository_id: int, now: datetime.datetime) -> int:
    known = Participation.objects.select_for_update().filter(repository=repository_id)
    most = known.values_list("max_in_flight", flat=True).first()
    pending = Dispatch.objects.filter(repository=repository_id, state=DispatchState.PENDING)
    free = WOKEN_AT_ONCE
    if most is not None:
        coming = _answered(pending).filter(next_attempt_at__lte=now).count()
        free = max(0, most - in_flight(repository_id, now=now).count() - coming)
    keys = list(pending.filter(next_attempt_at=None).order_by("pk").values_list("pk", flat=True)[:free])
    Dispatch.objects.filter(pk__in=keys, state=DispatchState.PENDING).update(
        next_attempt_at=now, woken_at=now, error=""
    )
    wake(DISPATCH_PENDING, map(str, keys), now=now)
    return len(keys)


# --- sending again ----------------------------------------------------------------------------------------------


@transaction.atomic
def resend_dispatch(*, dispatch: Dispatch, actor: Actor, now: datetime.datetime) -> Event:
    """Try a dispatch that was given up again, with as many attempts as a new one. Raises Problem `dispatch_state`."""
    moment = clock.real(now)
    moved = Dispatch.objects.filter(pk=dispatch.pk, state=DispatchState.GIVEN_UP).update(
        state=DispatchState.PENDING,
        attempts_allowed=F("attempts") + ATTEMPTS_MAX,
        next_attempt_at=moment,
        woken_at=moment,
        changed_at=moment,
        error="",
    )
    if moved != 1:
        dispatch.refresh_from_db(fields=["state"])
        state = DispatchState(dispatch.state).label
        raise Problem("dispatch_state", f"It is {state}: only what was given up is sent again.")
    wake(DISPATCH_PENDING, [str(dispatch.pk)], now=now)
    return record(
        action=Action.DISPATCH_RESENT,
        actor=actor,
        subject=Subject("dispatch", str(dispatch.pk), str(dispatch)),
        summary=f"{dispatch} is sent again",
        before={"state": dispatch.state, "attempts": dispatch.attempts, "error": dispatch.error},
        after={"state": DispatchState.PENDING.value},
        now=now,
        is_decision=False,
    )


# --- the sweep --------------------------------------------------------------------------------------------------


def sweep(*, now: datetime.datetime, lost_after_seconds: float = SENDING_LOST_SECONDS) -> int:
    """Wake what is due or has lost its task: deliveries not fanned out, dispatches to be sent. Returns how many. What
    the mode does not do is not woken.

    `lost_after_seconds`: how old a send is whose worker is taken as lost.
    """
    mode, stale = modes.current(), now - datetime.timedelta(seconds=TASK_LOST_SECONDS)
    _take_back(now, lost_after_seconds)
    woken = _wake_received(now, stale) if mode.takes_webhooks else 0
    if mode.dispatches:
        woken += release(now=now) + _wake_due(now, stale)
    return woken


@transaction.atomic
def _take_back(now: datetime.datetime, lost_after_seconds: float) -> None:
    died = abandoned(Dispatch.objects.all(), now=now, after_seconds=lost_after_seconds)
    is_last = Q(attempts__gte=F("attempts_allowed"))
    died.filter(is_last).update(state=DispatchState.GIVEN_UP, error=LOST, changed_at=now)
    died.filter(~is_last).update(state=DispatchState.PENDING, error=LOST, next_attempt_at=now, woken_at=None)


@transaction.atomic
def _wake_received(now: datetime.datetime, stale: datetime.datetime) -> int:
    deliveries = Delivery.objects.filter(state=DeliveryState.RECEIVED, received_at__lt=stale)
    keys = list(deliveries.values_list("pk", flat=True)[:WOKEN_AT_ONCE])
    wake(DELIVERY_RECEIVED, map(str, keys), now=now)
    return len(keys)


@transaction.atomic
def _wake_due(now: datetime.datetime, stale: datetime.datetime) -> int:
    due = Dispatch.objects.filter(state=DispatchState.PENDING, next_attempt_at__lte=now)
    room = max(0, IN_HAND_MAX - due.filter(woken_at__gte=stale).count())
    waiting = due.filter(Q(woken_at=None) | Q(woken_at__lt=stale)).order_by("next_attempt_at", "pk")
    pending = list(waiting.values_list("pk", flat=True)[:room])
    Dispatch.objects.filter(pk__in=pending, state=DispatchState.PENDING).update(woken_at=now)
    wake(DISPATCH_PENDING, map(str, pending), now=now)
    return len(pending)
