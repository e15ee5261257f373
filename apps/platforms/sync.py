"""Following a file of upstream's: what it says becomes the listing, unless a guard keeps the last good copy.

Each round asks GitHub a few things, then writes; a round that is repeated, or overtaken by another, changes nothing.
"""

import datetime
import hashlib
import logging
from typing import Any

from django.db import transaction

from apps.audit.enums import Action
from apps.audit.services import HUB, Actor, Subject, record
from apps.core import clock, rounds
from apps.core.errors import Problem
from apps.core.github import GitHubRefused, GitHubUnavailable, client
from apps.core.github_files import Commit, Pull, RepositoryFiles
from apps.core.wakeups import wake
from apps.platforms import authority, topics
from apps.platforms.allowlist import Allowlist, parse
from apps.platforms.authority import FileAddress
from apps.platforms.edits import entry_of_edit, settle, subject_of
from apps.platforms.enums import OPEN_EDITS, AlarmKind, DemotionState, EditState
from apps.platforms.models import AllowlistAlarm, AllowlistEdit, Demotion, Repository, UpstreamFile
from apps.platforms.selectors import former_names, listing, open_alarm
from apps.platforms.services import REASON_MAX, import_allowlist
from apps.platforms.sync_policy import (
    DEMOTION_PREFIX,
    DEMOTIONS_MAX,
    GUARDS,
    SILENT_AFTER,
    Refusal,
    judge,
    repository_of_branch,
)

log = logging.getLogger(__name__)


def sync(*, now: datetime.datetime) -> None:
    """One round: the pull requests of decisions, the file, then what follows for decisions and demotions.

    What GitHub refuses about a pull request or a branch is left out of the round: the file is followed all the same.
    """
    where = authority.address()
    files = RepositoryFiles(client(), where.full_name)
    try:
        # Asked before the file is read: what was merged by then stands in it.
        pulls = _pulls_of_decisions(files)
        is_current = follow_file(files, where, now=now)
        follow_decisions(pulls, is_current=is_current, now=now)
        follow_demotions(files, now=now)
    except GitHubUnavailable as error:
        log.warning("%s: %s", where, error)
        rounds.undone(str(error))
        _note_silence(where, str(error), now)
    except GitHubRefused as refusal:
        log.error("demotions of %s: %s", where, refusal)
        rounds.undone(f"demotions: {refusal}")


# --- the file ---------------------------------------------------------------------------------------------------


def follow_file(files: RepositoryFiles, where: FileAddress, *, now: datetime.datetime) -> bool:
    """Take the file as its branch has it now. Returns whether the list in force is what the file says.

    Raises GitHubUnavailable.
    """
    file = _file_row(now)
    try:
        commit = files.newest_commit(where.path, branch=where.branch)
        is_known = commit.sha == file.commit_sha
        content = file.text.encode() if is_known else files.read(where.path, ref=commit.sha).content
    except GitHubRefused as refusal:
        with transaction.atomic():
            _answered(now)
            raise_alarm(where, Refusal(AlarmKind.REFUSED, str(refusal)), commit_sha="", text="", now=now)
        return False
    return _take(file.commit_sha, commit, content, where, now)


def _file_row(now: datetime.datetime) -> UpstreamFile:
    return UpstreamFile.objects.get_or_create(pk=1, defaults={"answered_at": now})[0]


def _answered(now: datetime.datetime) -> None:
    UpstreamFile.objects.filter(pk=1).update(answered_at=now)


@transaction.atomic
def _take(known_sha: str, commit: Commit, content: bytes, where: FileAddress, now: datetime.datetime) -> bool:
    """Make the listing equal to a file that the guards let through. Returns whether it is."""
    file = UpstreamFile.objects.select_for_update().get(pk=1)
    if file.commit_sha != known_sha:  # another round was faster
        return False
    _answered(now)
    alarm = open_alarm()
    is_accepted = alarm is not None and alarm.commit_sha == commit.sha and alarm.accepted_seq is not None
    verdict = judge(content, listing(), is_accepted=is_accepted, former=former_names())
    if isinstance(verdict, Refusal):
        text = content.decode(errors="replace").replace("\0", "")
        raise_alarm(where, verdict, commit_sha=commit.sha, text=text, now=now)
        return False
    import_allowlist(
        allowlist=verdict,
        source=f"{where} at {commit.sha[:12]}",
        sha256=hashlib.sha256(content).hexdigest(),
        actor=HUB,
        now=now,
        evidence={"commit": commit.sha, "committed_at": commit.at.astimezone(datetime.UTC).isoformat()},
        decided=_decided(verdict),
    )
    if file.commit_sha != commit.sha:
        UpstreamFile.objects.filter(pk=1).update(commit_sha=commit.sha, text=content.decode(), taken_at=now)
    _clear_alarm(where, now)
    return True


def _decided(allowlist: Allowlist) -> dict[str, dict[str, Any]]:
    """Which entries are what was decided here: key → the decision and its pull request."""
    return {
        one.repository.full_name.lower(): {"decision": one.event_seq, "pull_request": one.pull_url}
        for one in AllowlistEdit.objects.select_related("repository").filter(state__in=OPEN_EDITS)
        if is_said(allowlist, one)
    }


def is_said(allowlist: Allowlist, decided: AllowlistEdit) -> bool:
    """Whether a file says what was decided."""
    said, wanted = allowlist.find(decided.repository.full_name), entry_of_edit(decided)
    if said is None or wanted is None:
        return said is wanted
    names = ("level", "device", "oncalls", "events")
    return all(getattr(said, name) == getattr(wanted, name) for name in names)


# --- alarms -----------------------------------------------------------------------------------------------------


def _subject(where: FileAddress) -> Subject:
    return Subject("allowlist", where.path[:100], str(where)[:200])


def raise_alarm(
    where: FileAddress, refusal: Refusal, *, commit_sha: str, text: str, now: datetime.datetime
) -> AllowlistAlarm:
    """Say that the file is not taken, in the caller's transaction; once for the same file and reason.

    The log hears of it, and whoever looks after the allowlist gets an e-mail. An earlier alarm gives way to it.
    """
    alarm = open_alarm()
    rounds.undone(f"the file is not taken: {refusal.detail}")
    if alarm is not None and (alarm.kind, alarm.commit_sha) == (refusal.kind, commit_sha):
        return alarm
    AllowlistAlarm.objects.filter(cleared_at=None).update(cleared_at=now)
    made = AllowlistAlarm.objects.create(
        kind=refusal.kind, detail=refusal.detail.replace("\0", ""), commit_sha=commit_sha, text=text, raised_at=now
    )
    wake(topics.ALLOWLIST_ALARM, [str(made.pk)], now=now)
    record(
        action=Action.ALARM_RAISED,
        actor=HUB,
        subject=_subject(where),
        summary=f"The allowlist file is not taken ({refusal.kind.label}): the last good copy stays in force",
        reason=made.detail,
        evidence={"guard": refusal.kind.value, "commit": commit_sha},
        now=now,
        is_decision=False,
    )
    return made


def _clear_alarm(where: FileAddress, now: datetime.datetime) -> None:
    if AllowlistAlarm.objects.filter(cleared_at=None).update(cleared_at=now):
        record(
            action=Action.ALARM_CLEARED,
            actor=HUB,
            subject=_subject(where),
            summary="The allowlist file is taken again",
            now=now,
            is_decision=False,
        )


@transaction.atomic
def _note_silence(where: FileAddress, words: str, now: datetime.datetime) -> None:
    file = _file_row(now)
    is_silent = clock.real(now) - file.answered_at > SILENT_AFTER
    if is_silent and open_alarm() is None:
        raise_alarm(where, Refusal(AlarmKind.SILENT, words), commit_sha="", text="", now=now)


@transaction.atomic
def accept_file(*, alarm: AllowlistAlarm, reason: str, actor: Actor, now: datetime.datetime) -> None:
    """Say that the file means what a guard stopped: the next round takes exactly this commit.

    Raises Problem: `malformed` (no reason), `alarm_stale` (no longer open, or of a kind that nobody can accept).
    """
    reason = reason.strip()
    if not 0 < len(reason) <= REASON_MAX:
        raise Problem("malformed", f"reason: say why in 1 to {REASON_MAX} characters.", "reason")
    locked = AllowlistAlarm.objects.select_for_update().get(pk=alarm.pk)
    if locked.cleared_at or locked.accepted_seq or not GUARDS[AlarmKind(locked.kind)].can_be_accepted:
        raise Problem("alarm_stale", "This alarm is not open any more, or not one to accept: look again.")
    event = record(
        action=Action.FILE_ACCEPTED,
        actor=actor,
        subject=_subject(authority.address()),
        summary=f"The allowlist file is to be taken as it is at {locked.commit_sha[:12]}",
        reason=reason,
        evidence={"guard": locked.kind, "seen": locked.detail, "commit": locked.commit_sha},
        now=now,
    )
    AllowlistAlarm.objects.filter(pk=locked.pk).update(accepted_seq=event.seq)
    wake(topics.SYNC_WANTED, [str(locked.pk)], now=now)


# --- decisions --------------------------------------------------------------------------------------------------


def _pulls_of_decisions(files: RepositoryFiles) -> dict[int, Pull]:
    """The pull request of every decision that has one and waits, by the decision's key."""
    pulls = {}
    for decided in AllowlistEdit.objects.filter(state=EditState.OPENED, pull_number__isnull=False):
        try:
            pulls[decided.pk] = files.pull(decided.pull_number or 0)
        except GitHubRefused as refusal:
            log.error("pull request #%s of decision #%s: %s", decided.pull_number, decided.event_seq, refusal)
    return pulls


def follow_decisions(pulls: dict[int, Pull], *, is_current: bool, now: datetime.datetime) -> None:
    """End the decisions that the file says, and put back those whose pull request was closed without that.

    What counts is the file: a bot that lands commits closes its pull requests, and GitHub does not call them merged.
    While the file is not taken as it is (`is_current` False), nobody can tell, and all wait.
    """
    if not is_current:
        return
    file = UpstreamFile.objects.get(pk=1)
    allowlist = parse(file.text).renamed(former_names())
    for decided in AllowlistEdit.objects.select_related("repository").filter(state__in=OPEN_EDITS):
        pull = pulls.get(decided.pk)
        if is_said(allowlist, decided):
            settle(decided=decided, state=EditState.MERGED, commit_sha=file.commit_sha, now=now)
        elif pull is not None and pull.is_merged:  # and changed again since
            settle(decided=decided, state=EditState.MERGED, commit_sha=pull.merge_sha, now=now)
        elif pull is not None and not pull.is_open:
            words = f"pull request #{pull.number} was closed without being merged"
            settle(decided=decided, state=EditState.CLOSED, error=words, now=now)


# --- demotions --------------------------------------------------------------------------------------------------


def follow_demotions(files: RepositoryFiles, *, now: datetime.datetime) -> None:
    """Record the pull requests by which upstream's own script wants to lower repositories, and how they end."""
    seen = set()
    for branch in files.branches(DEMOTION_PREFIX, limit=DEMOTIONS_MAX):
        name = repository_of_branch(branch)
        repository = Repository.objects.filter(full_name__iexact=name or "").first()
        pull = files.pull_of_branch(branch, state="open") if repository else None
        if repository is not None and pull is not None:
            seen.add(pull.number)
            _note_demotion(repository, pull, now)
    for demotion in Demotion.objects.select_related("repository").filter(state=DemotionState.OPEN):
        if demotion.pull_number not in seen and not (pull := files.pull(demotion.pull_number)).is_open:
            _end_demotion(demotion, pull, now)


@transaction.atomic
def _note_demotion(repository: Repository, pull: Pull, now: datetime.datetime) -> None:
    demotion, is_new = Demotion.objects.get_or_create(
        pull_number=pull.number,
        defaults={
            "repository": repository,
            "pull_url": pull.url,
            "title": pull.title.replace("\0", "")[:300],
            "level_before": repository.level,
            "opened_at": pull.opened_at,
        },
    )
    is_back = not is_new and Demotion.objects.filter(pk=demotion.pk).exclude(state=DemotionState.OPEN).update(
        state=DemotionState.OPEN, ended_at=None
    )
    if is_new or is_back:
        _record_demotion(demotion, Action.DEMOTION_PROPOSED, "is open: no new check runs meanwhile", now)


@transaction.atomic
def _end_demotion(demotion: Demotion, pull: Pull, now: datetime.datetime) -> None:
    # A bot that lands commits closes its pull requests: then the level says what happened.
    is_merged = pull.is_merged or demotion.repository.level < demotion.level_before
    state = DemotionState.MERGED if is_merged else DemotionState.CLOSED
    changed = Demotion.objects.filter(pk=demotion.pk, state=DemotionState.OPEN).update(state=state, ended_at=now)
    if changed == 1:
        _record_demotion(demotion, Action.DEMOTION_ENDED, f"was {state.label}", now)


def _record_demotion(demotion: Demotion, action: Action, words: str, now: datetime.datetime) -> None:
    record(
        action=action,
        actor=HUB,
        subject=subject_of(demotion.repository),
        summary=f"Upstream's demotion #{demotion.pull_number} of {demotion.repository.full_name} {words}",
        evidence={"pull_request": demotion.pull_url},
        now=now,
        is_decision=False,
    )
