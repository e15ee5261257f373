"""Background tasks of governance: each fetches by key, calls one service, and may run twice without harm."""

from celery import shared_task

from apps.core.clock import now
from apps.governance import nights, notices, services


def enqueue_notices(keys: list[str]) -> None:
    """Wake-up handler of `notice_pending`."""
    for key in keys:
        send_notice.delay(int(key))


def put_back_proposals(keys: list[str]) -> None:
    """Wake-up handler of `decision_put_back`: a bounded piece of database work, done on the spot."""
    for key in keys:
        services.put_back_proposal(edit_pk=int(key), now=now())


def announce_alarms(keys: list[str]) -> None:
    """Wake-up handler of `allowlist_alarm`: a bounded piece of database work, done on the spot."""
    for key in keys:
        notices.announce_alarm(int(key), now=now())


def announce_broken(keys: list[str]) -> None:
    """Wake-up handler of `quarantine_broken`: a bounded piece of database work, done on the spot."""
    for key in keys:
        notices.announce_broken(int(key), now=now())


def announce_breakers(keys: list[str]) -> None:
    """Wake-up handler of `breaker_said`: a bounded piece of database work, done on the spot."""
    for key in keys:
        notices.announce_breaker(int(key), now=now())


@shared_task
def send_notice(notice_pk: int) -> str | None:
    """Send one e-mail."""
    return notices.send_notice(notice_pk=notice_pk, now=now())


@shared_task
def sweep_notices() -> int:
    """Wake e-mails whose task was lost, or whose next attempt is due."""
    return notices.sweep(now=now())


@shared_task
def evaluate_field() -> int:
    """Hold every listed repository against the policy, once a UTC day."""
    return nights.evaluate_field(now=now())
