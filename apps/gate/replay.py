"""Had this repository been blocking for the last days: every head put to the gate's own rules, as things stood then.

A head is looked at from when the hub heard of it until a newer one of its pull request came, or now. That a pull
request was merged meanwhile ends nothing: had the repository been blocking, it would have waited. A bounded number of
queries, however many heads; the rest is done in memory.
"""

import datetime
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from apps.core.errors import Problem
from apps.gate.enums import BaseState, Effect
from apps.gate.facts import Reading
from apps.gate.policy import (
    JobFact,
    Part,
    Requirement,
    Row,
    current,
    own_requirements,
    part_effect,
    requirements_of,
)
from apps.gate.replay_policy import HOUR, Head, Outcome, Replay, Wrong
from apps.gate.rows import Question, Rows
from apps.platforms.models import Repository
from apps.platforms.policy import PUBLIC_FROM
from apps.policies.policy import SHIPPED, WINDOW_MAX, Act, Policy
from apps.policies.selectors import policy_of, versions
from apps.relay.enums import Bucket, DeliveryState, Flag
from apps.relay.models import Delivery, Job
from apps.relay.policy import PULL_REQUEST, is_answered

DAYS = 14
# As many repositories are looked at together: their rows are read once, and held in memory meanwhile.
TOGETHER = 5
# What a head keeps of the rows behind what was said of it.
ROWS_KEPT = 20
_TOLD = (DeliveryState.FANNED_OUT, DeliveryState.RECEIVED)
# Outcomes that the gate waits for from the dispatch on.
_SINCE_SENT = ("missing", "running", "undispatched")
_NEVER_STARTED = "startup_failure"


def replay(repository: Repository, *, days: int = DAYS, now: datetime.datetime) -> Replay:
    """What the gate would have said of each head of the last `days` whole UTC days, had the repository been blocking.
    Raises Problem `malformed` where that are less than one or more than the longest window."""
    return replays([repository], days=days, now=now)[repository.pk]


def replays(repositories: Iterable[Repository], *, days: int, now: datetime.datetime) -> dict[int, Replay]:
    """By repository (primary key) the same, each as if it alone had been blocking."""
    if not 1 <= days <= WINDOW_MAX:
        raise Problem("malformed", f"days: saw {days}, send 1 to {WINDOW_MAX}.", "days")
    until = now.astimezone(datetime.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since = until - datetime.timedelta(days=days)
    listed, told = list(repositories), _told(since, now)
    found: dict[int, Replay] = {}
    for start in range(0, len(listed), TOGETHER):
        asked = {
            repository: _heads({**_relayed(repository, since, now), **told}, until, now)
            for repository in listed[start : start + TOGETHER]
        }
        ground = _Ground.of(asked, now) if any(asked.values()) else None
        for repository, them in asked.items():
            maker = _Maker(repository, ground, now) if ground else None
            heads = tuple(maker.head(one) for one in them) if maker else ()
            found[repository.pk] = Replay(repository.full_name, since, until, now, heads)
    return found


@dataclass(frozen=True)
class _Asked:
    """A head and how long it was the newest of its pull request."""

    pr_number: int
    sha: str
    told_at: datetime.datetime
    ends_at: datetime.datetime
    is_newest: bool


def _told(since: datetime.datetime, now: datetime.datetime) -> dict[tuple[int, str], datetime.datetime]:
    """Heads of pull requests that upstream told of since, and when first."""
    told = Delivery.objects.filter(
        event=PULL_REQUEST, state__in=_TOLD, pr_number__isnull=False, received_at__gte=since, received_at__lte=now
    ).exclude(head_sha="")
    first: dict[tuple[int, str], datetime.datetime] = {}
    wanted = told.order_by("received_at", "pk").values_list("pr_number", "head_sha", "action", "received_at")
    for number, sha, action, at in wanted.iterator(5_000):
        if number is not None and is_answered(PULL_REQUEST, action):
            first.setdefault((number, sha), at)
    return first


def _relayed(
    repository: Repository, since: datetime.datetime, now: datetime.datetime
) -> dict[tuple[int, str], datetime.datetime]:
    """Heads that a repository's jobs tell of which another relay dispatched, and when first."""
    relayed = Job.objects.filter(
        repository=repository, dispatch=None, pr_number__isnull=False, first_seen_at__gte=since, first_seen_at__lte=now
    ).exclude(head_sha="")
    first: dict[tuple[int, str], datetime.datetime] = {}
    for number, sha, at in relayed.order_by("first_seen_at", "pk").values_list(
        "pr_number", "head_sha", "first_seen_at"
    ):
        first.setdefault((number or 0, sha), at)
    return first


def _heads(
    first: dict[tuple[int, str], datetime.datetime], until: datetime.datetime, now: datetime.datetime
) -> list[_Asked]:
    """Heads that the hub first heard of before `until`, the oldest first."""
    found: list[_Asked] = []
    newest: dict[int, datetime.datetime] = {}
    for (number, sha), at in sorted(first.items(), key=lambda item: (item[1], item[0]), reverse=True):
        if at < until:
            found.append(_Asked(number, sha, at, newest.get(number, now), number not in newest))
        newest[number] = at
    return found[::-1]


@dataclass(frozen=True)
class _Ground:
    """What replays of one moment stand on: the rows of all their heads, and every policy with its first moment."""

    rows: Rows
    policies: list[tuple[datetime.datetime, Policy]]

    @classmethod
    def of(cls, asked: Mapping[Repository, list[_Asked]], now: datetime.datetime) -> "_Ground":
        dated = sorted(((version.from_at, policy_of(version)) for version in versions()), key=lambda pair: pair[0])
        blocking = frozenset(repository.pk for repository in asked)
        heads = dict.fromkeys((one.sha, one.pr_number) for them in asked.values() for one in them)
        # As far back as any of the policies looks; each moment's own cuts it.
        far = max(one.limits["base_commits"] for one in (SHIPPED, *(policy for _, policy in dated)))
        return cls(Rows([Question(sha, number, now) for sha, number in heads], far, blocking, blocking), dated)


class _Maker:
    """Says of each head what the gate would have said."""

    def __init__(self, repository: Repository, ground: _Ground, now: datetime.datetime) -> None:
        self.repository, self.now = repository, now
        self.rows, self.policies = ground.rows, ground.policies
        self.reading = Reading(self.rows)
        self.waits = {
            policy.number: _blocking_waits(policy) for policy in (SHIPPED, *(one for _, one in self.policies))
        }

    def policy(self, at: datetime.datetime) -> Policy:
        """The policy in force at a moment."""
        place = bisect_right(self.policies, at, key=lambda pair: pair[0])
        return self.policies[place - 1][1] if place else SHIPPED

    def part(self, one: _Asked, at: datetime.datetime) -> Part:
        """Its part of a head as it stood at a moment."""
        self.rows.bases.base_commits = self.policy(at).limits["base_commits"]
        part = self.reading.part(Question(one.sha, one.pr_number, at), self.repository)
        assert part is not None, "the head was told by then, and who blocks has a part in each"
        return part

    def head(self, one: _Asked) -> Head:
        """What the gate would have said of a head."""
        for at in self._moments(one):
            if (found := self._at(one, at)).outcome in (Outcome.BLOCKED, Outcome.UNKNOWN):
                return found
        return self._at(one, one.ends_at)

    def _at(self, one: _Asked, at: datetime.datetime) -> Head:
        """What it would have said at a moment."""
        if why := self._private(one.told_at, at):
            return self._said(one, at, Outcome.UNKNOWN, [], first=why)
        part, policy = self.part(one, at), self.policy(at)
        if part.left_out:
            why = f"It was not sent it, so it said nothing: {part.left_out}"
            return self._said(one, at, Outcome.UNKNOWN, [], first=why)
        found = requirements_of(part, policy, at)
        effect = part_effect(found)
        if effect is Effect.BLOCKS:
            return self._blocked(one, at, part, found)
        if effect is Effect.UNKNOWN:
            return self._said(one, at, Outcome.UNKNOWN, [each for each in found if each.effect is effect])
        if effect is Effect.WAITS:
            why = (
                "Still awaited when the replay was made." if one.is_newest else "Still awaited when a newer head came."
            )
            return self._said(one, at, Outcome.UNANSWERED, found, first=why)
        settled = max(one.told_at, min(_settled(part, found, policy), at))
        return self._said(one, settled, Outcome.PASSED, found)

    def _private(self, since: datetime.datetime, until: datetime.datetime) -> str:
        """Why what the repository said in between cannot be known: '' where it was at a public level all the time."""
        intervals = sorted(self.rows.intervals[self.repository.pk], key=lambda one: one.started_at)
        known_until, level = since, 0
        for one in intervals:
            if one.started_at <= known_until and (one.ended_at is None or one.ended_at > known_until):
                level = one.level
                if level < PUBLIC_FROM:
                    break
                if one.ended_at is None or one.ended_at > until:
                    return ""
                known_until, level = one.ended_at, 0
        return "It was at L1 then: what it said is not kept as jobs." if level else "It was not listed then."

    def _moments(self, one: _Asked) -> list[datetime.datetime]:
        """When the gate may have begun to block a head: with an end that is no plain success, with a report of it, once
        a wait is over, once what let it pass was."""
        rows, pk = self.rows, self.repository.pk
        waits = self.waits[self.policy(one.told_at).number]
        jobs = [job for job in rows.jobs[one.sha, pk] if job.pr_number == one.pr_number]
        is_declared = bool(rows.declared[pk])
        troubled = [
            job
            for job in jobs
            if job.completed_at and (is_declared or {job.bucket, job.conclusion} != {Bucket.SUCCESS.value})
        ]
        if not troubled and waits.keys().isdisjoint(_SINCE_SENT):
            return []
        found = {job.completed_at for job in troubled if job.completed_at}
        for job in troubled:
            found |= {up.report.parsed_at for up in rows.uploads[job.pk] if up.report.parsed_at}
        if troubled:
            found |= {over.withdrawn_at or over.until for over in rows.overrides[one.pr_number]}
            found |= {trip.closed_at for trip in rows.trips[pk] if trip.closed_at}
        found |= {end + wait for end in found for name, wait in waits.items() if name not in _SINCE_SENT}
        begins = {one.told_at, *self._sent_at(one)}
        if troubled:
            # Once that wait is over an older red end counts beside what still runs. Another policy may say otherwise.
            running = self.policy(one.told_at).handling["running"]
            found |= {begin + running.hours * HOUR for begin in begins if running.act is Act.WAIT}
            found |= {from_at for from_at, _ in self.policies}
        found |= {begin + waits[name] for begin in begins for name in _SINCE_SENT if name in waits}
        return sorted(at for at in found if one.told_at <= at < one.ends_at)

    def _sent_at(self, one: _Asked) -> list[datetime.datetime]:
        rows, pk = self.rows, self.repository.pk
        sent = [each.sent_at for delivery in rows.deliveries[one.sha] for each in rows.dispatches[delivery.pk, pk]]
        return [at for at in sent if at]

    # --- what blocked -------------------------------------------------------------------------------------------

    def _blocked(self, one: _Asked, at: datetime.datetime, part: Part, found: list[Requirement]) -> Head:
        blocking = [each for each in found if each.effect is Effect.BLOCKS]
        wrong, rows = self._wrong(one, at, part, blocking)
        return self._said(one, at, Outcome.BLOCKED, blocking, wrong=wrong, more=rows)

    def _wrong(
        self, one: _Asked, at: datetime.datetime, part: Part, blocking: list[Requirement]
    ) -> tuple[tuple[Wrong, ...], list[Row]]:
        """Why a block was wrong: only where each job that blocks has a reason. What another platform confirms speaks
        against the change, or against upstream: it is right."""
        if any(each.is_confirmed for each in blocking):
            return (), []
        if not part.jobs:
            return (Wrong.INFRASTRUCTURE,), []
        last = self.part(one, self.now)
        standing = current(last.jobs)
        policy, counting = self.policy(at), current(part.jobs) + current(part.jobs, only_ended=True)
        found: dict[Wrong, list[Row]] = {}
        for job in dict.fromkeys(counting):
            alone = own_requirements(replace(part, jobs=(job,)), policy, at)
            if part_effect(alone) is not Effect.BLOCKS:
                continue
            reasons = self._excuses(job, standing)
            if not reasons:
                return (), []
            for why, rows in reasons.items():
                found.setdefault(why, []).extend(rows)
        return tuple(why for why in Wrong if why in found), [row for rows in found.values() for row in rows]

    def _excuses(self, job: JobFact, standing: list[JobFact]) -> dict[Wrong, list[Row]]:
        """By reason why one job blocked wrongly, the rows that show it."""
        found: dict[Wrong, list[Row]] = {}
        same = [one for one in standing if one.name == job.name]
        if same and all(one.outcome == Bucket.SUCCESS and one.began_at > job.began_at for one in same):
            found[Wrong.GREEN_AGAIN] = [one.row for one in same]
        blocking = [test for test in job.tests if test.quarantine is None and test.base is not BaseState.SAME]
        later = self.reading.quarantined_later(job.number, self.now) if blocking and job.is_whole else {}
        if later and all(test.row.url in later for test in blocking):
            found[Wrong.QUARANTINED] = list(dict.fromkeys(later[test.row.url] for test in blocking))
        known = self.rows.job[job.number]
        if known.conclusion == _NEVER_STARTED or Flag.INFERRED in known.flags:
            found[Wrong.INFRASTRUCTURE] = [job.row]
        return found

    def _said(
        self,
        one: _Asked,
        at: datetime.datetime,
        outcome: Outcome,
        found: Iterable[Requirement],
        *,
        first: str = "",
        wrong: tuple[Wrong, ...] = (),
        more: Iterable[Row] = (),
    ) -> Head:
        found = list(found)
        rows = dict.fromkeys([*(row for each in found for row in each.rows), *more])
        is_final = outcome in (Outcome.BLOCKED, Outcome.PASSED)
        return Head(
            pr_number=one.pr_number,
            sha=one.sha,
            told_at=one.told_at,
            at=at,
            outcome=outcome,
            policy_number=self.policy(at).number,
            sentences=tuple(filter(None, [first, *(each.sentence for each in found)])),
            rows=tuple(rows)[:ROWS_KEPT],
            wrong=wrong,
            hours=round((at - one.told_at) / HOUR, 2) if is_final else None,
        )


def _blocking_waits(policy: Policy) -> dict[str, datetime.timedelta]:
    """Of each outcome that is waited for and then blocks, how long."""
    waited = {name: row for name, row in policy.handling.items() if row.act is Act.WAIT and row.then is Act.BLOCK}
    return {name: row.hours * HOUR for name, row in waited.items()}


def _settled(part: Part, found: list[Requirement], policy: Policy) -> datetime.datetime:
    """When a part that passes came to that: its last end, or the end of the last wait that is over."""
    ends = [job.ended_at for job in current(part.jobs) if job.ended_at]
    sent = part.sent_at or part.asked_at
    for one in found:
        row = policy.handling.get(one.outcome)
        if row is not None and row.act is Act.WAIT:
            begin = sent if one.outcome in _SINCE_SENT else max(ends, default=sent)
            ends.append(begin + row.hours * HOUR)
    return max(ends, default=part.asked_at)
