"""E-mails about proposals, alarms and events of the log: rows first, sent by a task after the commit, so that a crash
loses none.

Each is sent at least once. A worker that dies between the mail server's yes and the row that says so is the one way
to a second copy; both copies then carry the same Message-ID, by which most readers show one.
"""

import datetime
import logging
import smtplib
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Q, QuerySet
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.selectors import holders
from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.core import clock, outbox
from apps.core.backoff import ATTEMPTS_MAX
from apps.core.permissions import Permission
from apps.core.wakeups import wake
from apps.gate.models import BreakerTrip
from apps.governance.enums import NoticeState, Party, State, Verb
from apps.governance.letters import EVENT_LETTERS, Letter, alarm_letter, event_letter, letter
from apps.governance.models import Notice, Transition
from apps.governance.topics import NOTICE_PENDING
from apps.platforms.enums import AlarmKind
from apps.platforms.models import AllowlistAlarm
from apps.platforms.selectors import edit_of_decision
from apps.quarantine.models import Quarantine
from apps.quarantine.selectors import readers_of

log = logging.getLogger(__name__)

# A mail server may take its time for each of its answers: only what is older has lost its worker.
SENDING_LOST_SECONDS = 600
SWEPT_AT_ONCE = 1_000
# A mail server's codes from here on: the same e-mail would be refused again.
FOR_GOOD = 500


def announce(transition: Transition, *, tells: Party, now: datetime.datetime) -> None:
    """Write the rows for whoever is told of a transition, in its transaction, and wake the task that sends them.

    Maintainers without an e-mail address find the proposal in the console; nobody hears of their own act.
    """
    readers: Iterable[User | None] = ()
    if tells is Party.VENDOR:
        readers = (None,)
    elif tells is Party.MAINTAINERS:
        readers = holders(Permission.PROPOSAL_DECIDE).exclude(email="").exclude(pk=transition.proposal.proposer_id)
    notices = Notice.objects.bulk_create(
        [Notice(transition=transition, user=reader, **_due(now)) for reader in readers]
    )
    wake(NOTICE_PENDING, [str(notice.pk) for notice in notices], now=now)


def announce_alarm(alarm_pk: int, *, now: datetime.datetime) -> None:
    """Write the rows for whoever looks after the allowlist, and wake the task that sends them."""
    readers = holders(Permission.ALLOWLIST_VIEW).exclude(email="")
    notices = Notice.objects.bulk_create([Notice(alarm_id=alarm_pk, user=reader, **_due(now)) for reader in readers])
    wake(NOTICE_PENDING, [str(notice.pk) for notice in notices], now=now)


def announce_broken(event_seq: int, *, now: datetime.datetime) -> None:
    """Write the rows for whoever is told that a quarantine's test fails always, by its event of the log, and wake the
    task that sends them."""
    event = Event.objects.get(seq=event_seq)
    announce_event(event, readers_of(Quarantine.objects.get(public_id=event.subject_id)), now=now)


def announce_breaker(event_seq: int, *, now: datetime.datetime) -> None:
    """Write the rows for maintainers and for the platform's members, who are told that a breaker opened or closed, by
    its event of the log, and wake the task that sends them."""
    event = Event.objects.get(seq=event_seq)
    platform = BreakerTrip.objects.get(public_id=event.subject_id).repository.platform_id
    concerned = Q(pk__in=holders(Permission.BREAKER_CLOSE).values("pk")) | Q(memberships__platform=platform)
    announce_event(event, User.objects.filter(concerned, is_active=True), now=now)


def announce_event(event: Event, readers: QuerySet[User], *, now: datetime.datetime) -> None:
    """Write the rows for whoever is told of an event of the log, in its transaction, and wake the task that sends them.
    What the e-mail says beside the event's own words stands in letters.EVENT_LETTERS."""
    reached = readers.exclude(email="").order_by("pk").distinct()
    notices = Notice.objects.bulk_create([Notice(event_seq=event.seq, user=one, **_due(now)) for one in reached])
    wake(NOTICE_PENDING, [str(notice.pk) for notice in notices], now=now)


def _due(now: datetime.datetime) -> dict[str, datetime.datetime]:
    """The times of a new row: its first attempt is due."""
    return {"changed_at": clock.real(now), "next_attempt_at": clock.real(now)}


def send_notice(*, notice_pk: int, now: datetime.datetime) -> NoticeState | None:
    """Send one e-mail whose time has come. Returns its new state; None when it was not there to be sent.

    A mail server that is away: pending again, and the sweep tries later (core/backoff.py). Refused for good, or nobody
    to write to: given up.
    """
    if not outbox.begin(Notice.objects.filter(pk=notice_pk, next_attempt_at__lte=clock.real(now)), now=now):
        return None
    notice = Notice.objects.select_related("transition__proposal", "alarm", "user").get(pk=notice_pk)
    try:
        error = "" if _send(notice) else "nobody to write to"
        is_final = bool(error)
    except smtplib.SMTPRecipientsRefused as problem:
        error, is_final = str(problem), all(code >= FOR_GOOD for code, _ in problem.recipients.values())
    except smtplib.SMTPResponseException as problem:
        # An answer about this message; a refused sign-in is the operator's to repair, and worth another try.
        is_final = problem.smtp_code >= FOR_GOOD and not isinstance(problem, smtplib.SMTPAuthenticationError)
        error = str(problem)
    except OSError as problem:  # smtplib's other errors among them
        error, is_final = str(problem), False
    except ValueError as problem:  # an address or a heading that no e-mail can carry
        error, is_final = str(problem), True
    return _finish(notice, error, is_final, clock.now())


def _send(notice: Notice) -> bool:
    """Hand the e-mail to the mail server; False when there is nobody to write to."""
    address = _address(notice)
    if not address:
        return False
    written = _written(notice)
    EmailMessage(
        written.subject,
        written.body,
        to=[address],
        headers={
            "Message-ID": f"<{notice.public_id}@{urlsplit(settings.BASE_URL).hostname}>",
            "Auto-Submitted": "auto-generated",
        },
    ).send()
    return True


def _written(notice: Notice) -> Letter:
    if notice.alarm:
        return _of_alarm(notice.alarm)
    if notice.event_seq is not None:
        return _of_event(Event.objects.get(seq=notice.event_seq))
    return _of_transition(notice.transition)


def _of_event(event: Event) -> Letter:
    body, about = body_of(event), EVENT_LETTERS[Action(event.action)]
    args = event.subject_label.split("/") if about.is_by_name else [event.subject_id]
    return event_letter(
        summary=body["summary"],
        reason=body["reason"],
        next_step=about.next_step,
        at=event.at,
        link=settings.BASE_URL + reverse(about.route, args=args),
    )


def _of_transition(transition: Transition | None) -> Letter:
    assert transition is not None, "a notice is about a transition, an alarm or an event"
    proposal = transition.proposal
    return letter(
        Verb(transition.verb),
        full_name=proposal.full_name,
        platform_name=proposal.platform_name,
        state=State(transition.state),
        actor=transition.actor_label,
        words=transition.words,
        at=transition.at,
        link=settings.BASE_URL + reverse("governance:proposal", args=[proposal.public_id]),
        first_callback=settings.BASE_URL + reverse("public:first_callback"),
        waits_for_file=edit_of_decision(transition.event_seq) is not None,
    )


def _of_alarm(alarm: AllowlistAlarm) -> Letter:
    return alarm_letter(
        kind=AlarmKind(alarm.kind),
        detail=alarm.detail,
        at=alarm.raised_at,
        link=settings.BASE_URL + reverse("platforms:allowlist"),
    )


def _address(notice: Notice) -> str:
    """Where the e-mail goes, as of now; empty for somebody who left."""
    if notice.user is None:
        return notice.transition.proposal.contact if notice.transition else ""
    return notice.user.email if notice.user.is_active else ""


def _finish(notice: Notice, error: str, is_final: bool, now: datetime.datetime) -> NoticeState:
    """Write how an attempt ended, unless the sweep has taken the e-mail back meanwhile. Returns what it ended as."""
    state = NoticeState.SENT
    values: dict[str, Any] = {"sent_at": now}
    if error:
        due_at = None if is_final else outbox.next_attempt_at(notice.attempts, now=now)
        state = NoticeState.GIVEN_UP if due_at is None else NoticeState.PENDING
        values = {} if due_at is None else {"next_attempt_at": due_at}
        # The error itself may hold an address: it stays in the row.
        log.warning("e-mail %s not sent, now %s", notice.public_id, state.label)
    mine = Notice.objects.filter(pk=notice.pk)
    if not outbox.finish(mine, attempt=notice.attempts, error=error, now=now, state=state, **values):
        log.warning("e-mail %s was taken back while it was sent", notice.public_id)
    return state


@transaction.atomic
def sweep(*, now: datetime.datetime) -> int:
    """Wake e-mails whose task was lost or whose next attempt is due. Returns how many were woken."""
    lost = outbox.abandoned(Notice.objects.all(), now=now, after_seconds=SENDING_LOST_SECONDS)
    lost.filter(attempts__gte=ATTEMPTS_MAX).update(state=NoticeState.GIVEN_UP, error=outbox.LOST, changed_at=now)
    lost.update(state=NoticeState.PENDING, error=outbox.LOST, next_attempt_at=now)
    due = Notice.objects.filter(state=NoticeState.PENDING, next_attempt_at__lte=now).order_by("next_attempt_at")
    keys = [str(pk) for pk in due.values_list("pk", flat=True)[:SWEPT_AT_ONCE]]
    wake(NOTICE_PENDING, keys, now=now)
    return len(keys)
