"""Verbs of the gate: keep what it says."""

import datetime
import hashlib
from collections.abc import Iterable

from django.db import connection, transaction

from apps.core.wakeups import wake
from apps.gate.enums import Verdict
from apps.gate.models import Override, StoredVerdict
from apps.gate.rows import Question
from apps.gate.selectors import Told, stored_at, told_of
from apps.gate.topics import GATE_CHANGED
from apps.policies.selectors import policy_at
from apps.relay.enums import DeliveryState
from apps.relay.graph_selectors import places_of
from apps.relay.models import Commit, Delivery
from apps.relay.policy import PULL_REQUEST

# A verdict waits for a policy's hours: so far back it is looked for, as long as a policy may say, with room.
SAID_WITHIN = datetime.timedelta(days=8)


def ask(question: Question) -> Told | None:
    """What the gate says of a commit now, kept where that is new. None where the hub was not told of the commit."""
    told = told_of(question)
    if told is not None:
        keep(told)
    return told


def keep(told: Told) -> StoredVerdict:
    """Append what the gate says, unless it is what was kept last. Returns the row that says it."""
    known = stored_at(_question(told))
    if known is not None and _is_same(known, told):
        return known
    with transaction.atomic():
        _lock(told.sha)
        known = stored_at(_question(told))
        if known is not None and _is_same(known, told):
            return known
        made = StoredVerdict.objects.create(
            sha=told.sha,
            pr_number=told.pr_number,
            at=told.at,
            verdict=told.answer.verdict,
            requirements=told.requirements,
            inputs_hash=told.inputs_hash,
            policy_number=told.policy.number,
        )
        wake(GATE_CHANGED, [told.sha], now=told.at)
        return made


def _question(told: Told) -> Question:
    return Question(told.sha, told.pr_number, told.at)


def _is_same(known: StoredVerdict, told: Told) -> bool:
    # The passing of time changes what is said of the same facts.
    says = (told.inputs_hash, told.answer.verdict, told.requirements)
    return (known.inputs_hash, known.verdict, known.requirements) == says


def _lock(sha: str) -> None:
    """One writer at a time about a commit, until the transaction ends."""
    key = int.from_bytes(hashlib.sha256(f"gate {sha}".encode()).digest()[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


def heads_that_wait(*, now: datetime.datetime) -> list[str]:
    """Commits of which the gate waits for something, or of which an override has run out since it was asked."""
    over = Override.objects.filter(withdrawn_at=None, until__gt=now - SAID_WITHIN, until__lte=now)
    ended: dict[int, datetime.datetime] = dict(over.order_by("until").values_list("pr_number", "until"))
    return [
        sha
        for sha, number, verdict, at in _newest(now)
        if verdict in (Verdict.PENDING, Verdict.UNKNOWN) or (number in ended and at < ended[number])
    ]


def heads_upon(shas: Iterable[str], *, now: datetime.datetime) -> list[str]:
    """Commits that do not pass and whose base may be one of these commits of main."""
    placed = Commit.objects.filter(sha__in=list(shas), position__isnull=False)
    positions = list(placed.values_list("position", flat=True))
    if not positions:
        return []
    waiting = [sha for sha, _, verdict, _ in _newest(now) if verdict != Verdict.PASS]
    reach = policy_at(now).limits["base_commits"]
    return [
        sha
        for sha, place in places_of(waiting).items()
        if any(position is not None and position <= place <= position + reach for position in positions)
    ]


def _newest(now: datetime.datetime) -> list[tuple[str, int | None, str, datetime.datetime]]:
    """Of each commit that the gate was asked about lately what it said last: (sha, pull request, verdict, when)."""
    said = StoredVerdict.objects.filter(at__gte=now - SAID_WITHIN).order_by("sha", "pr_number", "-at", "-pk")
    return list(said.distinct("sha", "pr_number").values_list("sha", "pr_number", "verdict", "at"))


def look_again(shas: list[str], *, now: datetime.datetime) -> int:
    """Ask the gate about heads of pull requests that something happened to. Returns of how many it said anything."""
    told = Delivery.objects.filter(head_sha__in=set(shas) - {""}, event=PULL_REQUEST, pr_number__isnull=False)
    places = told.filter(state=DeliveryState.FANNED_OUT).order_by("head_sha", "pr_number")
    found = [Question(sha, number, now) for sha, number in places.values_list("head_sha", "pr_number").distinct()]
    return sum(ask(question) is not None for question in found)
