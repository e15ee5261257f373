"""Following upstream's list of disabled tests: what it says is shown here, unless a guard keeps the last good copy."""

import datetime
import hashlib
import time
from dataclasses import dataclass
from typing import Any

import requests
from django.conf import settings
from django.db import transaction

from apps.audit.enums import Action
from apps.audit.services import HUB, Actor, Subject, record
from apps.core import alarms, clock, rounds
from apps.core.models import Alarm
from apps.quarantine.disabled_list import BYTES_MAX, SILENT_AFTER, DisabledList, Line, Refusal, judge
from apps.quarantine.enums import ListAlarm
from apps.quarantine.models import UpstreamDisabled, UpstreamList

TIMEOUT_SECONDS = 20
# However slowly it comes.
FETCH_SECONDS = 120
_CHUNK = 65_536
_DETAIL_MAX = 500
_ROWS_AT_ONCE = 1_000


@dataclass(frozen=True)
class Taken:
    """What became of a list that was taken, in tests."""

    added: int
    changed: int
    removed: int
    left_out: int
    total: int


@dataclass(frozen=True)
class _Fetched:
    """An answer of the list's address. `content` None: it has not changed."""

    content: bytes | None
    etag: str


class _Silent(Exception):
    """The address did not answer, or failed."""


class _Refused(Exception):
    """The address answered with something else than the list."""


def follow(*, now: datetime.datetime) -> None:
    """One round: take the list as its address has it now, or say why not. Off where no address is set."""
    if not settings.DISABLED_TESTS_URL:
        rounds.off()
        return
    kept = _row()
    try:
        fetched = _fetch(settings.DISABLED_TESTS_URL, kept.etag if kept.source == settings.DISABLED_TESTS_URL else "")
    except _Silent as error:
        rounds.undone(str(error))
        _note_silence(str(error), now)
        return
    except _Refused as error:
        _answered(now)
        _raise_alarm(Refusal(ListAlarm.REFUSED, str(error)), now)
        return
    _answered(now)
    if fetched.content is None:
        _clear_alarm(now)
        return
    taken = take(content=fetched.content, source=settings.DISABLED_TESTS_URL, actor=HUB, etag=fetched.etag, now=now)
    if isinstance(taken, Refusal):
        _raise_alarm(taken, now)


def _fetch(url: str, etag: str) -> _Fetched:
    """Ask the address. A redirect is not followed: it leads to whoever it likes. Raises _Silent, _Refused."""
    headers = {"If-None-Match": etag} if etag else {}
    deadline = time.monotonic() + FETCH_SECONDS
    content = bytearray()
    try:
        with requests.get(url, headers=headers, timeout=TIMEOUT_SECONDS, allow_redirects=False, stream=True) as answer:
            if answer.status_code == requests.codes.not_modified:
                return _Fetched(None, etag)
            if answer.status_code >= 500 or answer.status_code == requests.codes.too_many_requests:
                raise _Silent(f"it answered {answer.status_code}")
            if answer.status_code != requests.codes.ok:
                raise _Refused(f"it answered {answer.status_code}")
            for chunk in answer.iter_content(_CHUNK):
                content += chunk
                if len(content) > BYTES_MAX:
                    raise _Refused(f"it is larger than {BYTES_MAX:,} bytes")
                if time.monotonic() > deadline:
                    raise _Silent(f"it was not there after {FETCH_SECONDS} s")
            return _Fetched(bytes(content), answer.headers.get("ETag", "")[:200])
    except requests.RequestException as error:
        raise _Silent(f"it did not answer: {type(error).__name__}") from error


@transaction.atomic
def take(
    *, content: bytes, source: str, actor: Actor, now: datetime.datetime, etag: str = "", is_accepted: bool = False
) -> Taken | Refusal:
    """Make the copy in use equal to a list that the guards let through. One that they stop changes nothing.

    `is_accepted`: whoever brings it says that what is gone is meant to be.
    """
    row = UpstreamList.objects.select_for_update().get(pk=_row().pk)
    before = {one.said: one for one in UpstreamDisabled.objects.all()}
    judged = judge(content, before, is_accepted=is_accepted)
    if isinstance(judged, Refusal):
        return judged
    taken = _replace(before, judged)
    sha256 = hashlib.sha256(content).hexdigest()
    is_new = row.sha256 != sha256
    UpstreamList.objects.filter(pk=row.pk).update(
        source=source[:300],
        sha256=sha256,
        etag=etag,
        left_out=judged.left_out,
        taken_at=now if is_new else row.taken_at,
    )
    _clear_alarm(now)
    if is_new:
        record(
            action=Action.UPSTREAM_LIST_TAKEN,
            actor=actor,
            subject=_SUBJECT,
            summary=f"Upstream disables {taken.total:,} tests: {taken.added} new, {taken.changed} changed, "
            f"{taken.removed} enabled again",
            before={"tests": len(before), "sha256": row.sha256, "source": row.source},
            after={"tests": taken.total, "sha256": sha256, "source": source[:300], "left_out": judged.left_out},
            now=now,
            is_decision=False,
        )
    return taken


def _replace(before: dict[str, UpstreamDisabled], judged: DisabledList) -> Taken:
    after = {line.said: _kept(line) for line in judged.lines}
    added = [one for said, one in after.items() if said not in before]
    changed = []
    for said, one in after.items():
        if said in before and _told(before[said]) != _told(one):
            one.pk = before[said].pk
            changed.append(one)
    gone = [one.pk for said, one in before.items() if said not in after]
    UpstreamDisabled.objects.filter(pk__in=gone).delete()
    UpstreamDisabled.objects.bulk_create(added, batch_size=_ROWS_AT_ONCE)
    UpstreamDisabled.objects.bulk_update(changed, _COLUMNS, batch_size=_ROWS_AT_ONCE)
    return Taken(len(added), len(changed), len(gone), judged.left_out, len(after))


_COLUMNS = ("file", "identities", "issue", "url", "words")


def _told(one: UpstreamDisabled) -> tuple[Any, ...]:
    return tuple(getattr(one, name) for name in _COLUMNS)


def _kept(line: Line) -> UpstreamDisabled:
    file, identities = line.identities
    return UpstreamDisabled(
        said=line.said, file=file, identities=identities, issue=line.issue, url=line.url, words=list(line.words)
    )


def _row() -> UpstreamList:
    return UpstreamList.objects.get_or_create(pk=1)[0]


def _answered(now: datetime.datetime) -> None:
    UpstreamList.objects.filter(pk=1).update(answered_at=now)


_SUBJECT = Subject("upstreamlist", "1", "upstream's list of disabled tests")


# --- alarms -------------------------------------------------------------------------------------------------------


@transaction.atomic
def _note_silence(words: str, now: datetime.datetime) -> None:
    row = UpstreamList.objects.select_for_update().get(pk=1)
    last = row.answered_at or row.taken_at
    if last is None or clock.real(now) - last > SILENT_AFTER:
        _raise_alarm(Refusal(ListAlarm.SILENT, words), now)


@transaction.atomic
def _raise_alarm(refusal: Refusal, now: datetime.datetime) -> None:
    """Say that the list is not taken: in the log once for the same guard and words, to operators each time."""
    detail = refusal.detail.replace("\0", "")[:_DETAIL_MAX]
    rounds.undone(f"the list is not taken: {detail}")
    alarms.sound(Alarm.Kind.DISABLED_TESTS, detail=f"{refusal.kind.label}: {detail}", now=now)
    row = UpstreamList.objects.select_for_update().get(pk=1)
    if (row.alarm, row.alarm_detail) == (refusal.kind, detail):
        return
    UpstreamList.objects.filter(pk=1).update(
        alarm=refusal.kind, alarm_detail=detail, alarm_at=row.alarm_at if row.alarm else now
    )
    record(
        action=Action.UPSTREAM_LIST_ALARM_RAISED,
        actor=HUB,
        subject=_SUBJECT,
        summary=f"Upstream's list of disabled tests is not taken ({refusal.kind.label}): the last good copy stays",
        reason=detail,
        evidence={"guard": refusal.kind.value},
        now=now,
        is_decision=False,
    )


@transaction.atomic
def _clear_alarm(now: datetime.datetime) -> None:
    cleared = UpstreamList.objects.filter(pk=1).exclude(alarm="").update(alarm="", alarm_detail="", alarm_at=None)
    if cleared:
        record(
            action=Action.UPSTREAM_LIST_ALARM_CLEARED,
            actor=HUB,
            subject=_SUBJECT,
            summary="Upstream's list of disabled tests is taken again",
            now=now,
            is_decision=False,
        )
