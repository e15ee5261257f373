"""Verbs on notices: opened and ended by nights, answered by the vendor, decided by a maintainer."""

import datetime

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.services import actor_of
from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.services import HUB, Actor, Subject, record
from apps.core.errors import Problem, written
from apps.core.ids import public_id
from apps.core.text import HIDDEN_IN_TEXT, hidden_finding
from apps.core.workdays import deadline, named
from apps.governance.models import NightlyEvaluation
from apps.governance.nights import nights
from apps.governance.notices import announce_event
from apps.levels.falling_enums import FallState
from apps.levels.falling_policy import Standings, changes, is_back, lasting, standings, way_back
from apps.levels.models_falling import ANSWER_MAX, REASON_MAX, FallNotice, NoticeAnswer
from apps.levels.readers import readers_of
from apps.levels.ways_back import open_way_back
from apps.platforms.models import LevelInterval, Repository
from apps.platforms.policy import LEVELS, OBSERVATION
from apps.platforms.recusals import refuse_own
from apps.platforms.services import change_level
from apps.policies.policy import LIMITS, Policy, Use
from apps.policies.selectors import policy_at

# More nights than any policy asks for in a row.
NIGHTS_MAX = LIMITS["dwell_days"].most


def follow_nights(*, now: datetime.datetime) -> int:
    """Open and end notices as the nights that were kept say. Returns how many were opened or ended. May run at any
    time and again."""
    changed = 0
    for repository in Repository.objects.filter(level__gte=OBSERVATION, is_probe=False).order_by("pk"):
        changed += _follow(repository.pk, now)
    fallen = FallNotice.objects.filter(state=FallState.OPEN).exclude(repository__level__gte=OBSERVATION)
    for pk in fallen.values_list("repository_id", flat=True):
        changed += _follow(pk, now)
    return changed


@transaction.atomic
def _follow(repository_pk: int, now: datetime.datetime) -> bool:
    repository = Repository.objects.select_for_update(of=("self",)).select_related("platform").get(pk=repository_pk)
    notice = FallNotice.objects.filter(repository=repository, state=FallState.OPEN).first()
    if notice is None:
        return _open(repository, now)
    if repository.level != notice.level:
        why = f"The repository is at {repository.level_code} meanwhile, by another decision."
        return _end(notice, FallState.SUPERSEDED, HUB, why, now) is not None
    later = [standings(night.results) for night in newest_nights(notice) if night.evaluated_at > notice.opened_at]
    if not is_back(later, notice.criteria, notice.dwell_days):
        return False
    event = _end(notice, FallState.MET_AGAIN, HUB, f"Met in {notice.dwell_days} nights in a row.", now)
    announce_event(event, readers_of(repository.platform), now=now)
    return True


def newest_nights(notice: FallNotice) -> list[NightlyEvaluation]:
    """The nights about staying at the notice's level, newest first."""
    return nights(notice.repository, use=Use.STAY, level=notice.level, days=NIGHTS_MAX)


def _open(repository: Repository, now: datetime.datetime) -> bool:
    policy = policy_at(now)
    dwell = policy.limits["dwell_days"]
    since = _counted_since(repository)
    found = nights(repository, use=Use.STAY, level=repository.level, days=dwell)
    kept = [night for night in found if since is None or night.evaluated_at > since]
    criteria = lasting([standings(night.results) for night in kept], dwell)
    if not criteria:
        return False
    key, platform = public_id(), repository.platform
    ends = deadline(now, policy.limits["notice_working_days"], platform.calendar)
    back = way_back(_asked(criteria, kept[0], policy), dwell)
    event = record(
        action=Action.NOTICE_OPENED,
        actor=HUB,
        subject=Subject("fallnotice", str(key), repository.full_name),
        summary=f"Notice to {repository.full_name}: what staying at {repository.level_code} asks for was not met in "
        f"{dwell} nights in a row",
        after={
            "criteria": criteria,
            "deadline": ends.isoformat(),
            "calendar": platform.calendar,
            "way_back": back,
        },
        reason=f"{_said(criteria, kept[0])} Deadline {ends:%Y-%m-%d %H:%M} UTC, in {named(platform.calendar)}. {back}",
        evidence={"policy": policy.number, "nights": [night.day.isoformat() for night in kept]},
        now=now,
    )
    FallNotice.objects.create(
        public_id=key,
        repository=repository,
        level=repository.level,
        criteria=criteria,
        figures=[_frozen(night, criteria) for night in kept],
        way_back=back,
        dwell_days=dwell,
        policy_number=policy.number,
        calendar=platform.calendar,
        opened_at=now,
        deadline_at=ends,
        event_seq=event.seq,
    )
    announce_event(event, readers_of(platform), now=now)
    return True


def _counted_since(repository: Repository) -> datetime.datetime | None:
    """The nights before count no more: the level began, or an earlier notice ended."""
    began = LevelInterval.objects.filter(repository=repository, ended_at=None).values_list("started_at", flat=True)
    ended = FallNotice.objects.filter(repository=repository).exclude(state=FallState.OPEN)
    moments = [*began, *ended.order_by("-ended_at").values_list("ended_at", flat=True)[:1]]
    return max(filter(None, moments), default=None)


def _frozen(night: NightlyEvaluation, criteria: list[str]) -> dict[str, object]:
    rows = [row for row in night.results if row["criterion"] in criteria]
    return {"day": night.day.isoformat(), "policy": night.policy_number, "results": rows}


def _asked(criteria: list[str], night: NightlyEvaluation, policy: Policy) -> list[tuple[str, str]]:
    asks = {row["criterion"]: row["asks"] for row in night.results}
    titles = {row.key: row.of.title for row in policy.criteria}
    return [(titles.get(key, key), asks[key]) for key in criteria]


def _said(criteria: list[str], night: NightlyEvaluation) -> str:
    return " ".join(row["sentence"] for row in night.results if row["criterion"] in criteria)


@transaction.atomic
def answer_notice(*, notice: FallNotice, text: str, by: User, now: datetime.datetime) -> NoticeAnswer:
    """Write what the platform says to a notice. It pauses nothing. Raises Problem: `malformed` (no text, or one that
    hides characters), `notice_stale`."""
    text = written(text, "text", ANSWER_MAX)
    if finding := hidden_finding(HIDDEN_IN_TEXT, text):
        raise Problem("malformed", f"text: {finding}", "text")
    locked = _locked(notice)
    actor = actor_of(by)
    made = NoticeAnswer.objects.create(notice=locked, by=by, by_label=actor.label, text=text, at=now)
    record(
        action=Action.NOTICE_ANSWERED,
        actor=actor,
        subject=_subject(locked),
        summary=f"The notice to {locked.repository.full_name} was answered",
        after={"text": text},
        now=now,
        is_decision=False,
    )
    return made


@transaction.atomic
def lift_notice(*, notice: FallNotice, reason: str, by: User, now: datetime.datetime) -> Event:
    """End a notice without a demotion. Raises Problem: `malformed` (no reason), `recusal`, `notice_stale`."""
    reason = written(reason, "reason", REASON_MAX)
    refuse_own(by, notice.repository.platform)
    locked = _locked(notice)
    event = _end(locked, FallState.LIFTED, actor_of(by), reason, now)
    announce_event(event, readers_of(locked.repository.platform), now=now)
    return event


@transaction.atomic
def demote(
    *,
    notice: FallNotice,
    reason: str,
    by: User,
    now: datetime.datetime,
    expected_level: int,
    seen_night: datetime.date,
    device: str = "",
) -> Event:
    """Lower a repository by one level on an open notice whose deadline has passed; its way back is kept.

    `expected_level` and `seen_night` (the newest night about staying) are what the decider saw; `device` is for L3,
    where none is known. Returns the change of level. Raises Problem: `malformed` (no reason), `recusal`,
    `notice_stale`, `notice_early` (the deadline), `evidence_stale` (says what changed since), `level_stale`, and what
    platforms.services.change_level raises.
    """
    reason = written(reason, "reason", REASON_MAX)
    refuse_own(by, notice.repository.platform)
    locked = _locked(notice)
    if now < locked.deadline_at:
        raise Problem("notice_early", f"The deadline is {locked.deadline_at:%Y-%m-%d %H:%M} UTC.")
    if news := news_since(locked, seen_night):
        raise Problem("evidence_stale", f"Since the night of {seen_night}: {'; '.join(news)}.", "seen_night")
    link = settings.BASE_URL + reverse("levels:notice", args=[locked.public_id])
    changed = change_level(
        repository=locked.repository,
        level=locked.level - 1,
        reason=reason,
        evidence=f"Notice of {locked.opened_at:%Y-%m-%d}: {link}",
        device=device,
        expected_level=expected_level,
        actor=actor_of(by),
        now=now,
    )
    open_way_back(locked.repository, locked.level, event_seq=changed.seq, now=now)
    event = _end(locked, FallState.DEMOTED, actor_of(by), reason, now, {"decision": changed.seq})
    announce_event(event, readers_of(locked.repository.platform), now=now)
    return changed


def news_since(notice: FallNotice, seen_night: datetime.date) -> list[str]:
    """What became of the notice's criteria since a night, a clause each."""
    found = newest_nights(notice)
    seen = next((standings(night.results) for night in found if night.day == seen_night), {})
    newest: Standings = standings(found[0].results) if found else {}
    return changes(seen, newest, notice.criteria)


def _locked(notice: FallNotice) -> FallNotice:
    """The open notice, held until the transaction ends; its repository before it, as `follow_nights` does. Raises
    Problem `notice_stale`."""
    Repository.objects.select_for_update().get(pk=notice.repository_id)
    held = FallNotice.objects.select_for_update(of=("self",)).select_related("repository__platform").get(pk=notice.pk)
    if held.state != FallState.OPEN:
        raise Problem("notice_stale", f"The notice is {FallState(held.state).label}: {held.ended_why}")
    return held


def _subject(notice: FallNotice) -> Subject:
    return Subject("fallnotice", str(notice.public_id), notice.repository.full_name)


_ENDED: dict[FallState, tuple[Action, str]] = {
    FallState.MET_AGAIN: (Action.NOTICE_MET_AGAIN, "meets again what the notice was about"),
    FallState.DEMOTED: (Action.NOTICE_DEMOTED, "was demoted on its notice"),
    FallState.LIFTED: (Action.NOTICE_LIFTED, "stays: the notice was lifted"),
    FallState.SUPERSEDED: (Action.NOTICE_SUPERSEDED, "changed its level in another way: the notice is over"),
}


def _end(
    notice: FallNotice,
    state: FallState,
    actor: Actor,
    why: str,
    now: datetime.datetime,
    evidence: dict[str, object] | None = None,
) -> Event:
    """The last step of every end: a compare-and-set, and its event."""
    ended = {"state": state, "ended_at": now, "ended_by": actor.label, "ended_why": why}
    if FallNotice.objects.filter(pk=notice.pk, state=FallState.OPEN).update(**ended) != 1:
        raise Problem("notice_stale", "The notice has ended meanwhile.")
    action, words = _ENDED[state]
    return record(
        action=action,
        actor=actor,
        subject=_subject(notice),
        summary=f"{notice.repository.full_name} {words}",
        before={"state": FallState.OPEN.value, "level": LEVELS[notice.level].code},
        after={"state": state.value},
        reason=why,
        evidence={"notice": notice.event_seq} | (evidence or {}),
        now=now,
    )
