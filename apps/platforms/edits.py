"""Decisions that wait for the file: made here, opened as a pull request upstream, in force when the file says so.

The row is the outbox: it exists before the first request leaves, and every step of it is a compare-and-set.
"""

import datetime
import logging
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.notes import Note
from apps.audit.selectors import body_of
from apps.audit.services import HUB, Actor, Subject, record
from apps.core import clock
from apps.core.errors import Problem
from apps.core.github import GitHubRefused, GitHubUnavailable, client
from apps.core.github_files import RepositoryFiles
from apps.core.wakeups import wake
from apps.platforms import authority, topics
from apps.platforms.allowlist import AllowlistError, Entry, parse
from apps.platforms.allowlist_edit import EditError, edit
from apps.platforms.enums import OPEN_EDITS, EditState
from apps.platforms.models import AllowlistEdit, Repository
from apps.platforms.policy import LEVELS, STABLE
from apps.platforms.selectors import former_names
from apps.platforms.sync_policy import OPENING_GIVEN_UP_AFTER, OPENING_LOST_AFTER

log = logging.getLogger(__name__)

ERROR_MAX = 500
# GitHub's word for "the branch has moved under you": the same steps, begun anew, may succeed.
MOVED = 409


def subject_of(repository: Repository) -> Subject:
    """The repository as the log names it."""
    return Subject("repository", str(repository.public_id), repository.full_name)


def decide(
    *,
    repository: Repository,
    to: Entry,
    before: dict[str, Any],
    after: dict[str, Any],
    reason: str,
    evidence: dict[str, Any],
    actor: Actor,
    now: datetime.datetime,
) -> Event:
    """Put a decision about a locked repository on record, and ask for its pull request; nothing is in force yet.

    `before` and `after` are the listing as the log spells it. Returns the decision. Raises Problem `decision_waits`
    where an earlier one still waits for the file.
    """
    waiting = AllowlistEdit.objects.filter(repository=repository, state__in=OPEN_EDITS).first()
    if waiting is not None:
        raise Problem(
            "decision_waits",
            f"Decision #{waiting.event_seq} about {repository.full_name} still waits for upstream's file: have its "
            "pull request merged or closed, then decide again.",
        )
    old, new = LEVELS[repository.level].code, LEVELS[to.level].code
    event = record(
        action=Action.LEVEL_DECIDED,
        actor=actor,
        subject=subject_of(repository),
        summary=f"{repository.full_name}: {old} to {new} decided, in force when upstream's file says so",
        before=before,
        after=after,
        reason=reason,
        evidence=evidence | {"file": str(authority.address())},
        now=now,
    )
    made = AllowlistEdit.objects.create(
        repository=repository,
        event_seq=event.seq,
        level_before=repository.level,
        level=to.level,
        device=to.device,
        oncalls=list(to.oncalls),
        events=sorted(to.events),
        decided_at=now,
        changed_at=clock.real(now),
    )
    wake(topics.EDIT_PENDING, [str(made.pk)], now=now)
    return event


def entry_of_edit(decided: AllowlistEdit) -> Entry | None:
    """The entry that was decided; None where it is to go."""
    if not decided.level:
        return None
    device = decided.device if decided.level == STABLE else ""
    name = decided.repository.full_name
    return Entry(decided.level, name, device, tuple(decided.oncalls), frozenset(decided.events))


def notes_of_decision(event: Event) -> list[Note]:
    """What became of a decision that waits, or waited, for the file: told on its page."""
    made = AllowlistEdit.objects.filter(event_seq=event.seq).first() if event.action == Action.LEVEL_DECIDED else None
    if made is None:
        return []
    link = f"pull request #{made.pull_number}" if made.pull_number else ""
    return [Note(made.state, made.get_state_display(), made.pull_url, link)]


# --- opening the pull request -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Outcome:
    state: EditState
    error: str = ""
    pull_number: int | None = None
    pull_url: str = ""


def open_pull_request(*, edit_pk: int, now: datetime.datetime) -> EditState | None:
    """Open the pull request of one pending decision. Returns the decision's new state; None when it was not pending.

    What an earlier attempt left behind (a branch, a commit, the pull request itself) is found and used. GitHub away:
    pending again, for a day. Refused, or a file that cannot be edited by lines: the decision is put back.
    """
    taken = AllowlistEdit.objects.filter(pk=edit_pk, state=EditState.PENDING).update(
        state=EditState.OPENING, changed_at=clock.real(now)
    )
    if taken != 1:
        return None
    decided = AllowlistEdit.objects.select_related("repository").get(pk=edit_pk)
    try:
        outcome = _open(decided)
    except GitHubUnavailable as error:
        outcome = _Outcome(_after_failure(decided, now), str(error))
    except GitHubRefused as error:
        is_final = error.status != MOVED
        outcome = _Outcome(EditState.FAILED if is_final else _after_failure(decided, now), str(error))
    except (EditError, AllowlistError, UnicodeDecodeError) as error:
        outcome = _Outcome(EditState.FAILED, f"{authority.address()} cannot be edited: {error}")
    _finish(decided, outcome, now)
    return outcome.state


def _open(decided: AllowlistEdit) -> _Outcome:
    where = authority.address()
    files = RepositoryFiles(client(), where.full_name)
    branch = branch_of(decided)
    pull = files.pull_of_branch(branch)
    if pull is None:
        head = files.branch_head(where.branch)
        if head is None:
            raise GitHubRefused(404, f"{where.full_name} has no branch {where.branch}")
        current = files.read(where.path, ref=head).content
        if _edited(current, decided) == current:
            return _Outcome(EditState.PENDING, "the file says so already: the next round takes it")
        if files.branch_head(branch) is None:
            files.create_branch(branch, sha=head)
        ours = files.read(where.path, ref=branch)
        edited = _edited(ours.content, decided)
        if edited != ours.content:
            files.write(where.path, edited, branch=branch, replaces=ours.sha, message=_title(decided))
        pull = files.open_pull(title=_title(decided), body=_body(decided), branch=branch, base=where.branch)
    return _Outcome(EditState.OPENED, pull_number=pull.number, pull_url=pull.url)


def branch_of(decided: AllowlistEdit) -> str:
    """The branch of a decision's pull request: one per decision, so that a repeated attempt finds it."""
    return f"accelhub/{decided.repository.full_name}-{decided.event_seq}"


def _edited(content: bytes, decided: AllowlistEdit) -> bytes:
    text = content.decode()
    return edit(text, _name_in(text, decided.repository.full_name), entry_of_edit(decided)).encode()


def _name_in(text: str, full_name: str) -> str:
    """The name that a file has for a repository: its present one, or a former one that was not replaced yet."""
    allowlist, former = parse(text), former_names()
    named = (one.full_name for one in allowlist.entries if former.get(one.key) == full_name)
    return full_name if allowlist.find(full_name) else next(named, full_name)


def _title(decided: AllowlistEdit) -> str:
    old, new = LEVELS[decided.level_before].code, LEVELS[decided.level].code
    return f"[CRCR] {decided.repository.full_name}: {old} to {new}"


def _body(decided: AllowlistEdit) -> str:
    """What the pull request says. The reason stands in a code block, where it calls nobody and links nowhere."""
    body = body_of(Event.objects.get(seq=decided.event_seq))
    link = settings.BASE_URL + reverse("audit:decision", args=[decided.event_seq])
    reason = body["reason"].replace("```", "'''")
    return (
        f"Decision #{decided.event_seq} of AccelHub, by {body['actor']['label']}: {link}\n\n```text\n{reason}\n```\n\n"
        "Merging this puts the decision in force; closing it puts the decision back."
    )


def _after_failure(decided: AllowlistEdit, now: datetime.datetime) -> EditState:
    is_over = now - decided.decided_at > OPENING_GIVEN_UP_AFTER
    return EditState.FAILED if is_over else EditState.PENDING


@transaction.atomic
def _finish(decided: AllowlistEdit, outcome: _Outcome, now: datetime.datetime) -> None:
    """Write how an attempt ended, unless the sweep has taken the decision back meanwhile."""
    error = outcome.error.replace("\0", "")[:ERROR_MAX]
    if error:
        log.warning("pull request of decision #%s: %s, now %s", decided.event_seq, error, outcome.state)
    changed = AllowlistEdit.objects.filter(
        pk=decided.pk, state=EditState.OPENING, changed_at=decided.changed_at
    ).update(
        state=outcome.state,
        error=error,
        pull_number=outcome.pull_number,
        pull_url=outcome.pull_url,
        changed_at=clock.real(now),
    )
    if changed != 1:
        log.warning("decision #%s was taken back while its pull request was opened", decided.event_seq)
    elif outcome.state is EditState.OPENED:
        record(
            action=Action.PULL_REQUEST_OPENED,
            actor=HUB,
            subject=subject_of(decided.repository),
            summary=f"Pull request #{outcome.pull_number} opened for decision #{decided.event_seq}",
            evidence={"decision": decided.event_seq, "pull_request": outcome.pull_url},
            now=now,
            is_decision=False,
        )
    elif outcome.state is EditState.FAILED:
        _tell_put_back(decided, f"no pull request could be opened: {error}", now)


def sweep(*, now: datetime.datetime) -> int:
    """Wake the decisions whose pull request is still to be opened, lost ones among them. Returns how many."""
    moment = clock.real(now)
    AllowlistEdit.objects.filter(state=EditState.OPENING, changed_at__lt=moment - OPENING_LOST_AFTER).update(
        state=EditState.PENDING, changed_at=moment, error="the worker was lost while opening"
    )
    keys = list(AllowlistEdit.objects.filter(state=EditState.PENDING).order_by("pk").values_list("pk", flat=True))
    with transaction.atomic():
        wake(topics.EDIT_PENDING, map(str, keys), now=now)
    return len(keys)


# --- how it ends ------------------------------------------------------------------------------------------------


@transaction.atomic
def settle(
    *, decided: AllowlistEdit, state: EditState, commit_sha: str = "", error: str = "", now: datetime.datetime
) -> bool:
    """End an open decision: merged, or put back. Returns whether this call did it."""
    changed = AllowlistEdit.objects.filter(pk=decided.pk, state__in=OPEN_EDITS).update(
        state=state, commit_sha=commit_sha, error=error[:ERROR_MAX], changed_at=clock.real(now)
    )
    if changed == 1 and state is not EditState.MERGED:
        _tell_put_back(decided, error, now)
    return changed == 1


def _tell_put_back(decided: AllowlistEdit, words: str, now: datetime.datetime) -> None:
    wake(topics.DECISION_PUT_BACK, [str(decided.pk)], now=now)
    record(
        action=Action.DECISION_PUT_BACK,
        actor=HUB,
        subject=subject_of(decided.repository),
        summary=f"{decided.repository.full_name} stays at {decided.repository.level_code}: decision "
        f"#{decided.event_seq} is put back",
        reason=words,
        evidence={"decision": decided.event_seq, "pull_request": decided.pull_url},
        now=now,
    )
