"""Verbs on the commit graph: the order of main from its pushes, each pull request's merge base from GitHub's compare.

Main is taken as one line: upstream merges by squashing. What a push says is placed at once; where something is missing
between the last commit known and a push (a missed webhook, a forced push), GitHub is asked what main is now.
"""

import datetime
import json
import logging
import random
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from apps.core import rounds
from apps.core.backoff import backoff_seconds
from apps.core.github import Compared, GitHubRefused, GitHubUnavailable, client
from apps.core.wakeups import wake
from apps.relay import fields, policy
from apps.relay.models import Commit, Delivery, GraphState, MainPush, MergeBase
from apps.relay.topics import BASE_KNOWN, GRAPH_PENDING

log = logging.getLogger(__name__)

MAIN = "main"
MAIN_REF = f"refs/heads/{MAIN}"
# GitHub leaves further commits out of a push's webhook.
PUSH_COMMITS_MAX = 2_048
# How many questions one run answers, pushes and merge bases each: GitHub's rate limit is everyone's.
AT_ONCE = 50
_LOCK = 7_013


def note(*, delivery: Delivery, body: dict[str, Any], now: datetime.datetime) -> None:
    """Remember, in the transaction that stores a delivery, what it asks of the graph."""
    if delivery.event == policy.PUSH and delivery.ref == MAIN_REF:
        before, after = fields.sha(body.get("before")), delivery.head_sha
        if not after.strip("0"):
            return
        MainPush.objects.create(delivery=delivery, before=before, after=after, due_at=now)
    elif delivery.event == policy.PULL_REQUEST and delivery.pr_number is not None and delivery.head_sha:
        MergeBase.objects.get_or_create(
            pr_number=delivery.pr_number, head_sha=delivery.head_sha, defaults={"due_at": now}
        )
    else:
        return
    wake(GRAPH_PENDING, ["graph"], now=now)


def settle(*, now: datetime.datetime) -> int:
    """Answer what is due, oldest first, AT_ONCE of each kind. Returns how many questions were looked at."""
    pushes = MainPush.objects.filter(state=GraphState.PENDING, due_at__lte=now).select_related("delivery")
    bases = MergeBase.objects.filter(state=GraphState.PENDING, due_at__lte=now)
    questions: list[MainPush | MergeBase] = [*pushes.order_by("pk")[:AT_ONCE], *bases.order_by("pk")[:AT_ONCE]]
    for question in questions:
        try:
            if isinstance(question, MainPush):
                _settle_push(question, now)
            else:
                _settle_base(question, now)
        except GitHubUnavailable as problem:
            rounds.undone(str(problem))
            _wait(question, str(problem), now, asked=problem.wait_seconds)
        except GitHubRefused as problem:
            _wait(question, str(problem), now)
    return len(questions)


def _wait(question: MainPush | MergeBase, error: str, now: datetime.datetime, *, asked: float = 0.0) -> None:
    """Ask again later, as core.backoff says; after its last attempt it stays unknown."""
    question.attempts += 1
    question.error = error[:500]
    wait = backoff_seconds(question.attempts, random.random(), asked=asked)  # noqa: S311  spreads load, keeps no secret
    if wait is None:
        question.state = GraphState.UNKNOWN
    else:
        question.due_at = now + datetime.timedelta(seconds=wait)
    question.save(update_fields=["attempts", "error", "due_at", "state"])


def _tip() -> Commit | None:
    return Commit.objects.filter(position__isnull=False).order_by("-position").first()


# --- main ---------------------------------------------------------------------------------------------------------


def _settle_push(push: MainPush, now: datetime.datetime) -> None:
    body, tip = json.loads(push.delivery.body), _tip()
    is_forced = body.get("forced") is True
    if not is_forced and not _is_placed(push.after) and (tip is None or push.before == tip.sha):
        _append(push.before, _pushed(body, push.after), now)
        tip = _tip()
    # Where something is missing in between, or was forced away, GitHub knows what main is now.
    is_unclear = is_forced or not _is_placed(push.after)
    if is_unclear and (unread := _catch_up(tip.sha if tip else push.before, now)):
        _wait(push, f"{unread} commits are still to be read", now)
        return
    push.state = GraphState.KNOWN if _is_placed(push.after) else GraphState.UNKNOWN
    push.error = "" if push.state == GraphState.KNOWN else "it is not on main any more"
    push.save(update_fields=["state", "error"])


def _catch_up(base: str, now: datetime.datetime) -> int:
    """Go on from a commit to what main is now, by GitHub's word. Returns how many commits are still to be read."""
    compared = client().compare(settings.UPSTREAM_REPO, base, MAIN)
    _follow(base, compared, now)
    return compared.ahead_by - len(compared.commits)


def _is_placed(sha: str) -> bool:
    return Commit.objects.filter(sha=sha, position__isnull=False).exists()


def _pushed(body: dict[str, Any], after: str) -> list[str]:
    """The commits of a push in order, where its webhook tells them all; else none."""
    rows = body.get("commits")
    shas = [fields.sha(row.get("id")) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return shas if shas and shas[-1] == after and all(shas) and len(shas) < PUSH_COMMITS_MAX else []


@transaction.atomic
def _append(parent: str, shas: Sequence[str], now: datetime.datetime) -> None:
    """Put commits behind `parent` in order. The first commit of all stands at 0."""
    if not shas:
        return
    _lock()
    known = Commit.objects.filter(sha=parent, position__isnull=False).first()
    if known is None:
        if _tip() is not None:  # nothing to put them behind: they stay unknown
            return
        if parent.strip("0"):
            known = Commit.objects.create(sha=parent, position=0, placed_at=now)
    position = -1 if known is None or known.position is None else known.position
    for sha in shas:
        position += 1
        place = {"parent_sha": parent if parent.strip("0") else "", "position": position, "placed_at": now}
        Commit.objects.update_or_create(sha=sha, defaults=place)
        parent = sha


@transaction.atomic
def _follow(base: str, compared: Compared, now: datetime.datetime) -> None:
    """Go on from `base` to what main is now; what is not on it any more leaves."""
    start = Commit.objects.filter(sha=base, position__isnull=False).first()
    if compared.behind_by and start is not None and start.position is not None:
        _lock()
        left = start.position - compared.behind_by
        Commit.objects.filter(position__gt=left).update(position=None)
        if not Commit.objects.filter(position=left).exists():
            Commit.objects.update_or_create(sha=compared.merge_base_sha, defaults={"position": left, "placed_at": now})
    _append(compared.merge_base_sha, compared.commits, now)


def _lock() -> None:
    """One writer of main's order at a time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


# --- merge bases --------------------------------------------------------------------------------------------------


def _settle_base(question: MergeBase, now: datetime.datetime) -> None:
    compared = client().compare(settings.UPSTREAM_REPO, MAIN, question.head_sha)
    # A push may have been missed: main as GitHub compared it comes before what left it.
    if (tip := _tip()) is not None and not _is_placed(compared.base_sha) and (unread := _catch_up(tip.sha, now)):
        _wait(question, f"{unread} commits of main are still to be read", now)
        return
    with transaction.atomic():
        _lock()
        _place_base(compared, now)
        question.base_sha, question.state, question.error = compared.merge_base_sha, GraphState.KNOWN, ""
        question.known_at = now
        question.save(update_fields=["base_sha", "state", "error", "known_at"])
        wake(BASE_KNOWN, [question.head_sha], now=now)


def _place_base(compared: Compared, now: datetime.datetime) -> None:
    """A base from before the hub's time stands so many commits before the one it was compared with."""
    asked, _ = Commit.objects.get_or_create(
        sha=compared.base_sha,
        defaults={"position": None if Commit.objects.exists() else 0, "placed_at": now},
    )
    if asked.position is None or Commit.objects.filter(sha=compared.merge_base_sha).exists():
        return
    position = asked.position - compared.behind_by
    if not Commit.objects.filter(position=position).exists():
        Commit.objects.create(sha=compared.merge_base_sha, position=position, placed_at=now)
