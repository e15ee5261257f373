"""Verbs on appeals. Each changes the row by compare-and-set and leaves a decision in the log, in one transaction."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Count, QuerySet
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.selectors import holders
from apps.accounts.services import actor_of
from apps.appeals import policy
from apps.appeals.contested import Undoing, compensate, decider_of, whose
from apps.appeals.enums import Claim, Outcome, State
from apps.appeals.independence import refuse_dependent
from apps.appeals.models import Appeal, AppealedRow
from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.audit.services import HUB, Actor, Subject, record
from apps.core.errors import Problem, written
from apps.core.ids import public_id
from apps.core.permissions import Permission
from apps.core.text import HIDDEN_IN_LINE, URL
from apps.core.workdays import deadline
from apps.governance.notices import announce_event
from apps.platforms.models import Membership, Platform, Repository
from apps.platforms.selectors import may_on_platform
from apps.policies.policy import WINDOW_MAX
from apps.policies.selectors import policy_at
from apps.relay.enums import JobStatus
from apps.relay.models import Job
from apps.relay.selectors import jobs as public_jobs
from apps.results.figure_table import METRICS
from apps.results.metrics import PULL_REQUESTS
from apps.results.selectors import repository_window
from apps.results.set_aside import set_aside

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Figure:
    """A contested number: a figure of a repository over the last `days` UTC days, today included."""

    repository: Repository
    name: str
    days: int


@dataclass(frozen=True)
class Said:
    """What a vendor brings: `jobs` by their public ids, `links` to evidence."""

    claim: str
    words: str
    links: Sequence[str] = ()
    jobs: Sequence[UUID] = ()


def appeal_decision(*, decision: Event, said: Said, by: User, now: datetime.datetime) -> Appeal:
    """Contest a decision about one's platform.

    Raises Problem: `malformed` (a decision that no appeal takes, claim, words, links, jobs), `not_permitted`,
    `appeal_late`, `already_appealed`.
    """
    platform, repository = whose(decision)
    days = policy_at(now).limits["appeal_days"]
    if decision.at < now - days * DAY:
        detail = f"decision: #{decision.seq} was made on {decision.at:%Y-%m-%d}, the policy gives {days} days."
        raise Problem("appeal_late", detail, "decision")
    return _open(
        platform,
        repository,
        said,
        by=by,
        now=now,
        decision_seq=decision.seq,
        decider_id_then=decider_of(decision),
        stood=body_of(decision)["summary"][:300],
    )


def appeal_figure(*, figure: Figure, said: Said, by: User, now: datetime.datetime) -> Appeal:
    """Contest a number, with the rows that should not count.

    Raises Problem: `malformed` (figure, window, claim, words, links, jobs), `not_permitted`, `already_appealed`.
    """
    if figure.name not in policy.FIGURES:
        detail = f"figure: saw {figure.name[:60]!r}, send one of {', '.join(policy.FIGURES)}."
        raise Problem("malformed", detail, "figure")
    if figure.days not in policy.WINDOWS:
        detail = f"days: saw {figure.days}, send one of {', '.join(map(str, policy.WINDOWS))}."
        raise Problem("malformed", detail, "days")
    if not said.jobs:
        raise Problem("malformed", "jobs: none is there, name the rows that should not count.", "jobs")
    today = now.astimezone(datetime.UTC).date()
    return _open(
        figure.repository.platform,
        figure.repository,
        said,
        by=by,
        now=now,
        figure=figure.name,
        first_day=today - (figure.days - 1) * DAY,
        last_day=today,
        stood=stood(figure, now),
    )


def stood(figure: Figure, now: datetime.datetime) -> str:
    """A figure as it is now, in words."""
    today = now.astimezone(datetime.UTC).date()
    window = repository_window(figure.repository, scope=PULL_REQUESTS, today=today, days=figure.days)
    value = window.figures[figure.name]
    metric = next(row for row in METRICS if row.key == figure.name)
    if value.value is None:
        return f"{metric.title}: no data in {figure.days} days"
    shown = f"{value.value:.0f} s" if value.part is None else f"{value.value:.1%}"
    return f"{metric.title}: {shown} over {value.rows} rows in {figure.days} days"


@transaction.atomic
def _open(
    platform: Platform,
    repository: Repository | None,
    said: Said,
    *,
    by: User,
    now: datetime.datetime,
    **about: Any,
) -> Appeal:
    if not is_member(by, platform):
        raise Problem("not_permitted", f"Only who speaks for {platform.name} may appeal on its behalf.")
    offered = policy.claims(is_decision="decision_seq" in about)
    if said.claim not in offered:
        detail = f"claim: saw {said.claim[:60]!r}, send one of {', '.join(offered)}."
        raise Problem("malformed", detail, "claim")
    words, links = written(said.words, "words", policy.WORDS_MAX), _links(said.links)
    jobs = _jobs(said.jobs, platform, repository, since=about.get("first_day") or now.date() - WINDOW_MAX * DAY)
    _refuse_again(about.get("decision_seq"), jobs)
    ends = deadline(now, policy_at(now).limits["appeal_working_days"], platform.calendar)
    actor, key = actor_of(by), public_id()
    try:
        with transaction.atomic():
            made = Appeal.objects.create(
                public_id=key,
                platform=platform,
                repository=repository,
                claim=said.claim,
                words=words,
                links=links,
                appellant=by,
                appellant_label=actor.label,
                opened_at=now,
                deadline_at=ends,
                changed_at=now,
                changed_by=actor.label,
                **about,
            )
            AppealedRow.objects.bulk_create([AppealedRow(appeal=made, job=job) for job in jobs])
    except IntegrityError:
        raise _taken(about.get("decision_seq"), jobs) from None
    evidence = {"decision": made.decision_seq, "figure": made.figure, "jobs": [str(job.public_id) for job in jobs]}
    event = _record(
        made,
        Action.APPEAL_OPENED,
        actor,
        now,
        summary=f"{platform.name} appeals {_about(made)}: {Claim(made.claim).label}",
        reason=words,
        after={"deadline": ends.isoformat(), "claim": made.claim},
        evidence=evidence | {"stood": made.stood, "links": links},
    )
    announce_event(event, holders(Permission.APPEAL_DECIDE).exclude(pk=by.pk), now=now)
    return made


def _refuse_again(decision_seq: int | None, jobs: Sequence[Job]) -> None:
    """Raises Problem `already_appealed` for what was appealed and withdrawn as often as the rules let it be: else an
    appeal that goes badly is withdrawn and made again before somebody else."""
    withdrawn = Appeal.objects.filter(decision_seq=decision_seq, state=State.WITHDRAWN)
    if decision_seq is not None and withdrawn.count() >= policy.APPEALED_MOST:
        raise Problem("already_appealed", f"decision: #{decision_seq} was appealed and withdrawn twice.", "decision")
    freed = AppealedRow.objects.filter(job__in=jobs, is_freed=True).values("job__public_id").annotate(times=Count("pk"))
    if often := freed.filter(times__gte=policy.APPEALED_MOST).order_by("job__public_id").first():
        detail = f"jobs: {often['job__public_id']} was appealed and withdrawn twice, leave it out."
        raise Problem("already_appealed", detail, "jobs")


def _taken(decision_seq: int | None, jobs: Sequence[Job]) -> Problem:
    """Which appeal holds what two wanted."""
    if decision_seq is not None:
        holder = Appeal.objects.filter(decision_seq=decision_seq).exclude(state=State.WITHDRAWN).first()
        if holder is not None:
            where = url_of(holder)
            return Problem("already_appealed", f"decision: #{decision_seq} stands in the appeal {where}.", "decision")
    row = AppealedRow.objects.filter(job__in=jobs, is_freed=False).select_related("appeal", "job").first()
    if row is None:
        return Problem("already_appealed", "It was appealed at the same moment, and withdrawn since: try again.")
    detail = f"jobs: {row.job.public_id} stands in the appeal {url_of(row.appeal)}, leave it out."
    return Problem("already_appealed", detail, "jobs")


@transaction.atomic
def pause_appeal(*, appeal: Appeal, days: int, reason: str, revision: int, by: User, now: datetime.datetime) -> Appeal:
    """Let the deadline stand still for so many working days, once; it then runs on by itself. By whoever may decide,
    or by the vendor.

    Raises Problem: `malformed` (no reason, too many days), `not_permitted`, `recusal`, `appeal_overdue`,
    `appeal_paused`, `appeal_stale`.
    """
    if not is_member(by, appeal.platform):
        _refuse_decider(by, appeal)
    reason = written(reason, "reason", policy.REASON_MAX)
    most = policy_at(now).limits["appeal_pause_working_days"]
    if not 1 <= days <= most:
        raise Problem("malformed", f"days: saw {days}, send 1 to {most} working days.", "days")
    if appeal.deadline_at <= now:
        raise Problem("appeal_overdue", f"Its deadline was {appeal.deadline_at:%Y-%m-%d %H:%M} UTC.")
    if appeal.paused_at is not None:
        raise Problem("appeal_paused", f"It was paused on {appeal.paused_at:%Y-%m-%d} already.")
    calendar = appeal.platform.calendar
    ends = policy.moved(appeal.deadline_at, days, calendar)
    before = appeal.deadline_at
    until = deadline(now, days, calendar)
    _move(appeal, revision, by, now, paused_at=now, paused_until=until, deadline_at=ends, reminded_at=None)
    event = _record(
        appeal,
        Action.APPEAL_PAUSED,
        actor_of(by),
        now,
        summary=f"Appeal of {_about(appeal)} paused until {until:%Y-%m-%d %H:%M} UTC",
        reason=reason,
        before={"deadline": before.isoformat()},
        after={"deadline": ends.isoformat()},
    )
    announce_event(event, _concerned(appeal).exclude(pk=by.pk), now=now)
    return appeal


@transaction.atomic
def withdraw_appeal(*, appeal: Appeal, reason: str, revision: int, by: User, now: datetime.datetime) -> Appeal:
    """Take an appeal back: its rows and its decision can be appealed once more. By who speaks for the platform.

    Raises Problem: `malformed` (no reason), `not_permitted`, `appeal_stale`.
    """
    if not is_member(by, appeal.platform):
        raise Problem("not_permitted", f"Only who speaks for {appeal.platform.name} may withdraw it.")
    reason = written(reason, "reason", policy.REASON_MAX)
    _move(appeal, revision, by, now, state=State.WITHDRAWN)
    appeal.rows.update(is_freed=True)
    summary = f"Appeal of {_about(appeal)} withdrawn"
    event = _record(appeal, Action.APPEAL_WITHDRAWN, actor_of(by), now, summary=summary, reason=reason)
    announce_event(event, holders(Permission.APPEAL_DECIDE).exclude(pk=by.pk), now=now)
    return appeal


@transaction.atomic
def decide_appeal(
    *,
    appeal: Appeal,
    outcome: Outcome,
    reason: str,
    revision: int,
    by: User,
    now: datetime.datetime,
    accepted: Sequence[UUID] = (),
) -> Appeal:
    """Uphold what was contested, amend it (`accepted`: some of the rows), or overturn it. Accepted rows are set aside,
    an overturned decision is undone, all in this transaction.

    Raises Problem: `malformed` (no reason, rows that are not the appeal's, an outcome that does not fit them),
    `not_permitted`, `recusal`, `appeal_stale`; and what the compensating verb refuses: then nothing is decided.
    """
    _refuse_decider(by, appeal)
    reason = written(reason, "reason", policy.REASON_MAX)
    rows = {row.job.public_id: row for row in appeal.rows.select_related("job")}
    if unknown := [str(key) for key in accepted if key not in rows]:
        raise Problem("malformed", f"accepted: {unknown[0]} is no row of this appeal.", "accepted")
    try:
        taken = policy.accepted_rows(outcome, list(rows), list(dict.fromkeys(accepted)))
    except ValueError as error:
        raise Problem("malformed", f"accepted: {error}", "accepted") from None
    ending = policy.ENDINGS[outcome]
    actor = actor_of(by)
    _move(appeal, revision, by, now, state=ending.state, decided_at=now, decided_by=actor.label, reason=reason)
    appeal.rows.update(is_accepted=False)
    appeal.rows.filter(job__public_id__in=taken).update(is_accepted=True)
    compensation = _compensate(appeal, outcome, reason, by, now)
    event = _record(
        appeal,
        ending.action,
        actor,
        now,
        summary=f"Appeal of {_about(appeal)}: {ending.state.label}",
        reason=reason,
        after={"accepted": [str(key) for key in taken], "of_rows": len(rows)},
        evidence={
            "compensation": compensation,
            "organisation_of_decider": str(by.organisation or ""),
            "late": policy.is_overdue(State.OPEN, appeal.deadline_at, now),
        },
    )
    set_aside(
        jobs=[rows[key].job for key in taken],
        why=Claim(appeal.claim).label,
        source_id=str(appeal.public_id),
        url=url_of(appeal),
        event_seq=event.seq,
        now=now,
    )
    announce_event(event, _concerned(appeal), now=now)
    return appeal


def _compensate(appeal: Appeal, outcome: Outcome, reason: str, by: User, now: datetime.datetime) -> int | None:
    if outcome is not Outcome.OVERTURN or appeal.decision_seq is None:
        return None
    contested = Event.objects.get(seq=appeal.decision_seq)
    made = compensate(Undoing(contested, reason, by, now, {"appeal": str(appeal.public_id)}))
    Appeal.objects.filter(pk=appeal.pk).update(compensation_seq=made)
    appeal.compensation_seq = made
    return made


def remind_overdue(*, now: datetime.datetime) -> int:
    """Tell those who may decide of appeals whose deadline has passed, once a deadline. Returns how many."""
    overdue = Appeal.objects.filter(state=State.OPEN, deadline_at__lte=now, reminded_at=None)
    return sum(_remind(appeal, now) for appeal in overdue.select_related("platform", "repository"))


@transaction.atomic
def _remind(appeal: Appeal, now: datetime.datetime) -> bool:
    fresh = Appeal.objects.filter(pk=appeal.pk, state=State.OPEN, reminded_at=None, deadline_at=appeal.deadline_at)
    if fresh.update(reminded_at=now) != 1:
        return False
    summary = f"Appeal of {_about(appeal)} is overdue since {appeal.deadline_at:%Y-%m-%d %H:%M} UTC"
    event = _record(appeal, Action.APPEAL_OVERDUE, HUB, now, summary=summary)
    announce_event(event, holders(Permission.APPEAL_DECIDE), now=now)
    return True


def is_member(user: Any, platform: Platform) -> bool:
    """Whether the user appeals, pauses and withdraws on a platform's behalf."""
    return may_on_platform(user, Permission.APPEAL_OPEN, platform)


def url_of(appeal: Appeal) -> str:
    """The path of its page."""
    return reverse("appeals:appeal", args=[appeal.public_id])


def _refuse_decider(by: User, appeal: Appeal) -> None:
    if not by.may(Permission.APPEAL_DECIDE):
        raise Problem("not_permitted", "Only maintainers decide appeals.")
    refuse_dependent(by, appeal)


def _move(appeal: Appeal, revision: int, by: User, now: datetime.datetime, **columns: Any) -> None:
    """The compare-and-set. Raises Problem `appeal_stale`, which says what has changed."""
    label = by.get_username()
    values = columns | {"revision": revision + 1, "changed_at": now, "changed_by": label}
    as_seen = Appeal.objects.filter(pk=appeal.pk, state=State.OPEN, revision=revision)
    if as_seen.update(**values) != 1:
        appeal.refresh_from_db()
        state = policy.state_at(appeal.state, appeal.paused_until, now).label
        detail = f"It is {state} since {appeal.changed_at:%Y-%m-%d %H:%M:%S} UTC, by {appeal.changed_by}."
        raise Problem("appeal_stale", detail, "revision")
    for name, value in values.items():
        setattr(appeal, name, value)


def _record(appeal: Appeal, action: Action, actor: Actor, now: datetime.datetime, **said: Any) -> Event:
    subject = Subject("appeal", str(appeal.public_id), appeal.platform.name)
    return record(action=action, actor=actor, subject=subject, now=now, **said)


def _about(appeal: Appeal) -> str:
    if appeal.decision_seq is not None:
        return f"decision #{appeal.decision_seq}"
    return f"{appeal.figure} of {appeal.repository}"


def _concerned(appeal: Appeal) -> QuerySet[User]:
    """Who is told: the platform's members."""
    members = Membership.objects.filter(platform=appeal.platform).values("user")
    return User.objects.filter(pk__in=members, is_active=True)


def _links(given: Sequence[str]) -> list[str]:
    links = [link.strip() for link in given if link.strip()]
    if len(links) > policy.LINKS_MAX:
        raise Problem("malformed", f"links: saw {len(links)}, send {policy.LINKS_MAX} at most.", "links")
    for link in links:
        if len(link) > policy.LINK_MAX or not URL.fullmatch(link) or HIDDEN_IN_LINE.search(link):
            detail = f"links: saw {link[:60]!r}, send addresses of the web of {policy.LINK_MAX} characters at most."
            raise Problem("malformed", detail, "links")
    return links


def _jobs(
    given: Sequence[UUID], platform: Platform, repository: Repository | None, *, since: datetime.date
) -> list[Job]:
    """The jobs that are named. Raises Problem `malformed` for one that cannot stand aside."""
    keys = list(dict.fromkeys(given))
    if len(keys) > policy.ROWS_MAX:
        raise Problem("malformed", f"jobs: saw {len(keys)}, send {policy.ROWS_MAX} at most.", "jobs")
    fitting = public_jobs().filter(
        repository__platform=platform, event_type=PULL_REQUESTS, status=JobStatus.COMPLETED, public_id__in=keys
    )
    if repository is not None:
        fitting = fitting.filter(repository=repository)
    fitting = fitting.filter(first_seen_at__gte=datetime.datetime.combine(since, datetime.time(), datetime.UTC))
    found = {job.public_id: job for job in fitting}
    if missing := [key for key in keys if key not in found]:
        whose_jobs = str(repository or platform)
        detail = f"jobs: {missing[0]} is no ended pull request job of {whose_jobs} in the window, leave it out."
        raise Problem("malformed", detail, "jobs")
    # In one order, so that two who want the same rows do not wait for each other in a circle.
    return sorted(found.values(), key=lambda job: job.pk)
