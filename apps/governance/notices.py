"""E-mails about proposals and alarms: rows first, sent by a task after the commit, so that a crash loses none.

Each is sent at least once. A worker that dies between the mail server's yes and the row that says so is the one way
to a second copy; both copies then carry the same Message-ID, by which most readers show one.
"""

import datetime
import logging
import smtplib
from collections.abc import Iterable
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.selectors import holders
from apps.core import clock
from apps.core.permissions import Permission
from apps.core.wakeups import wake
from apps.governance.enums import NoticeState, Party, State, Verb
from apps.governance.letters import Letter, alarm_letter, letter
from apps.governance.models import Notice, Transition
from apps.governance.policy import RETRY_MINUTES, SENDING_LOST_SECONDS, retry_at
from apps.governance.topics import NOTICE_PENDING
from apps.platforms.enums import AlarmKind
from apps.platforms.models import AllowlistAlarm
from apps.platforms.selectors import edit_of_decision

log = logging.getLogger(__name__)


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
        [Notice(transition=transition, user=reader, changed_at=clock.real(now)) for reader in readers]
    )
    wake(NOTICE_PENDING, [str(notice.pk) for notice in notices], now=now)


def announce_alarm(alarm_pk: int, *, now: datetime.datetime) -> None:
    """Write the rows for whoever looks after the allowlist, and wake the task that sends them."""
    readers = holders(Permission.ALLOWLIST_VIEW).exclude(email="")
    notices = Notice.objects.bulk_create(
        [Notice(alarm_id=alarm_pk, user=reader, changed_at=clock.real(now)) for reader in readers]
    )
    wake(NOTICE_PENDING, [str(notice.pk) for notice in notices], now=now)


def send_notice(*, notice_pk: int, now: datetime.datetime) -> NoticeState | None:
    """Send one pending e-mail. Returns its new state; None when it was not pending.

    A mail server that is away: pending again, and the sweep tries later (RETRY_MINUTES). Refused for good, or nobody to
    write to: given up.
    """
    taken = Notice.objects.filter(pk=notice_pk, state=NoticeState.PENDING).update(
        state=NoticeState.SENDING, attempts=F("attempts") + 1, changed_at=clock.real(now)
    )
    if taken != 1:
        return None
    notice = Notice.objects.select_related("transition__proposal", "alarm", "user").get(pk=notice_pk)
    error, state = "", NoticeState.SENT
    try:
        if not _send(notice):
            error, state = "nobody to write to", NoticeState.GIVEN_UP
    except smtplib.SMTPRecipientsRefused as problem:
        error, state = str(problem), _after_failure(notice, all(code >= 500 for code, _ in problem.recipients.values()))
    except smtplib.SMTPResponseException as problem:
        # An answer about this message; a refused sign-in is the operator's to repair, and worth another try.
        is_final = problem.smtp_code >= 500 and not isinstance(problem, smtplib.SMTPAuthenticationError)
        error, state = str(problem), _after_failure(notice, is_final)
    except OSError as problem:  # smtplib's other errors among them
        error, state = str(problem), _after_failure(notice, is_final=False)
    except ValueError as problem:  # an address or a heading that no e-mail can carry
        error, state = str(problem), NoticeState.GIVEN_UP
    _finish(notice, state, error, clock.now())
    return state


def _send(notice: Notice) -> bool:
    """Hand the e-mail to the mail server; False when there is nobody to write to."""
    address = _address(notice)
    if not address:
        return False
    written = _of_alarm(notice.alarm) if notice.alarm else _of_transition(notice.transition)
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


def _of_transition(transition: Transition | None) -> Letter:
    assert transition is not None, "a notice is about a transition or an alarm"
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


def _after_failure(notice: Notice, is_final: bool) -> NoticeState:
    is_last = notice.attempts >= len(RETRY_MINUTES)
    return NoticeState.GIVEN_UP if is_final or is_last else NoticeState.PENDING


def _finish(notice: Notice, state: NoticeState, error: str, now: datetime.datetime) -> None:
    """Write how an attempt ended, unless the sweep has taken the e-mail back meanwhile."""
    if error:  # the error itself may hold an address: it stays in the row
        log.warning("e-mail %s not sent, now %s", notice.public_id, state.label)
    changed = Notice.objects.filter(pk=notice.pk, state=NoticeState.SENDING, attempts=notice.attempts).update(
        state=state,
        error=error.replace("\0", "")[:500],
        changed_at=clock.real(now),
        sent_at=now if state is NoticeState.SENT else None,
    )
    if changed != 1:
        log.warning("e-mail %s was taken back while it was sent", notice.public_id)


@transaction.atomic
def sweep(*, now: datetime.datetime) -> int:
    """Wake e-mails whose task was lost or whose next attempt is due. Returns how many were woken."""
    lost = Notice.objects.filter(
        state=NoticeState.SENDING, changed_at__lt=now - datetime.timedelta(seconds=SENDING_LOST_SECONDS)
    )
    error = "the worker was lost while sending"
    lost.filter(attempts__gte=len(RETRY_MINUTES)).update(state=NoticeState.GIVEN_UP, error=error, changed_at=now)
    lost.update(state=NoticeState.PENDING, error=error)
    pending = Notice.objects.filter(state=NoticeState.PENDING).order_by("changed_at")[:1_000]
    due = [notice for notice in pending if (moment := retry_at(notice.changed_at, notice.attempts)) and moment <= now]
    wake(NOTICE_PENDING, [str(notice.pk) for notice in due], now=now)
    return len(due)
