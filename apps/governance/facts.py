"""What evaluations stand on, read for many repositories at once: a fixed number of queries whatever their number,
but for replays: a handful for each few repositories that are asked for one."""

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from statistics import median_low

from django.db.models import Count, F, Max, Min, Q, Sum
from django.db.models.functions import TruncDate

from apps.gate.replay import replays
from apps.gate.replay_kept import replays_lately
from apps.gate.replay_policy import Replay
from apps.gate.selectors import trips_by_day
from apps.governance.evaluation import DAY, Facts, Held, Refusals, days_held
from apps.platforms.models import LevelInterval, Repository
from apps.platforms.policy import MATURE, OBSERVATION, ONBOARDING
from apps.policies.policy import WINDOW_MAX
from apps.relay.enums import DispatchState, JobStatus
from apps.relay.enums import Verdict as Proof
from apps.relay.models import Callback, Dispatch, Job, Rejection
from apps.relay.selectors import last_callbacks
from apps.results.metrics import PULL_REQUESTS
from apps.results.models import Coverage
from apps.results.selectors import day_counts, scopes_counted
from apps.results.set_aside import aside_counts, less_by_day

# What is told apart as a changed job set or a drop in executed tests: these days, and as many before them.
NOTED_DAYS = 14
# An executed share that fell by more than this needs a word.
DROP = Fraction(5, 100)


def facts_of(
    repositories: Iterable[Repository],
    *,
    now: datetime.datetime,
    replayed: Mapping[int, int] | None = None,
    is_shown: bool = False,
) -> dict[int, Facts]:
    """By repository (primary key), what its criteria read, as of now: raw counts less the jobs of accepted appeals.
    `replayed`: over how many days a replay is made, by repository; it takes its time, so none is made of others.
    `is_shown`: only shown, not decided by: a replay may be of a while ago."""
    listed = list(repositories)
    pks = [repository.pk for repository in listed]
    today = now.astimezone(datetime.UTC).date()
    first = today - WINDOW_MAX * DAY
    days = day_counts(scope=PULL_REQUESTS, first=first, last=today - DAY, repository_ids=pks)
    aside = aside_counts(scope=PULL_REQUESTS, first=first, repository_ids=pks, now=now)
    scopes = scopes_counted(first=first, repository_ids=pks)
    tenure, since = _tenure(pks, now)
    answered = last_callbacks(listed, sees_private=True)
    asked = dict(
        Dispatch.objects.filter(repository__in=pks, state=DispatchState.SENT)
        .values_list("repository")
        .annotate(Max("sent_at"))
    )
    pairs = _pairs([repository.pk for repository in listed if repository.level == ONBOARDING], now)
    refused = _refused(pks, now)
    proven = _proven(pks, today)
    trips = trips_by_day([one.pk for one in listed if one.level >= MATURE], since=first, until=today)
    wrongly = _replayed(listed, replayed or {}, now, is_shown=is_shown)
    return {
        repository.pk: Facts(
            today=today,
            now=now,
            days=less_by_day(days.get(repository.pk, {}), aside.get(repository.pk, {})),
            has_other_jobs=bool(scopes.get(repository.pk, set()) - {PULL_REQUESTS}),
            tenure=tenure[repository.pk],
            answered_at=answered.get(repository.pk),
            asked_at=asked.get(repository.pk),
            level_since=since.get(repository.pk),
            pairs=pairs.get(repository.pk, {}),
            oncalls=tuple(repository.oncalls),
            refusals=refused[repository.pk],
            verified=proven.get(repository.pk, (0, 0))[0],
            ended=proven.get(repository.pk, (0, 0))[1],
            replayed=wrongly.get(repository.pk),
            trips=trips.get(repository.pk),
        )
        for repository in listed
    }


def _replayed(
    listed: list[Repository], over: Mapping[int, int], now: datetime.datetime, *, is_shown: bool
) -> dict[int, Mapping[datetime.date, tuple[int, int]]]:
    """By repository that is asked for a replay, by day (pull requests blocked wrongly, those of which it is known)."""
    found: dict[int, Replay] = {}
    for days in sorted({days for days in over.values() if days}):
        wanted = [repository for repository in listed if over.get(repository.pk) == days]
        found |= (replays_lately if is_shown else replays)(wanted, days=days, now=now)
    return {pk: one.by_day() for pk, one in found.items()}


def _tenure(
    pks: list[int], now: datetime.datetime
) -> tuple[dict[int, dict[int, Fraction]], dict[int, datetime.datetime]]:
    """Days at each level or above, and since when the repository is at the level that it has."""
    held: dict[int, list[Held]] = {pk: [] for pk in pks}
    since: dict[int, datetime.datetime] = {}
    intervals = LevelInterval.objects.filter(repository__in=pks, started_at__lte=now)
    for pk, level, start, end in intervals.values_list("repository_id", "level", "started_at", "ended_at"):
        held[pk].append((level, start, end))
        if end is None:
            since[pk] = start
    return {pk: days_held(intervals, now) for pk, intervals in held.items()}, since


def _pairs(pks: list[int], now: datetime.datetime) -> dict[int, dict[datetime.date, int]]:
    """Jobs of which a private start and a private end were heard, by the day of the end: at L1 there are no jobs."""
    kept = Callback.objects.filter(repository__in=pks, job=None, received_at__gte=now - WINDOW_MAX * DAY)
    heard: dict[tuple[int, str, str, str], dict[str, datetime.date]] = defaultdict(dict)
    of_days = kept.annotate(day=TruncDate("received_at", tzinfo=datetime.UTC))
    for pk, day, said in of_days.values_list("repository_id", "day", "report").iterator(2_000):
        job = (pk, str(said.get("run_id")), str(said.get("run_attempt")), str(said.get("job_name")))
        heard[job][str(said.get("status"))] = day
    pairs: dict[int, dict[datetime.date, int]] = defaultdict(lambda: defaultdict(int))
    for (pk, *_), days in heard.items():
        if {"in_progress", "completed"} <= set(days):
            pairs[pk][days["completed"]] += 1
    return pairs


def _refused(pks: list[int], now: datetime.datetime) -> dict[int, Refusals]:
    """Refusals that still come, over all requests since the first of them: refusals are kept as counts, not by day."""
    recent = Rejection.objects.filter(repository__in=pks, last_seen__gte=now - NOTED_DAYS * DAY)
    since = {
        pk: (min(first, now - NOTED_DAYS * DAY), count)
        for pk, first, count in recent.values_list("repository").annotate(Min("first_seen"), Sum("count"))
    }
    start = Q()
    for pk, (first, _) in since.items():
        start |= Q(repository=pk, received_at__gte=first)
    others = [pk for pk in pks if pk not in since]
    start |= Q(repository__in=others, received_at__gte=now - NOTED_DAYS * DAY)
    taken = dict(Callback.objects.filter(start).values_list("repository").annotate(Count("pk")))
    found = {pk: since.get(pk, (now - NOTED_DAYS * DAY, 0)) for pk in pks}
    return {pk: Refusals(count, count + taken.get(pk, 0), first.date()) for pk, (first, count) in found.items()}


def _proven(pks: list[int], today: datetime.date) -> dict[int, tuple[int, int]]:
    """(jobs that GitHub's record confirms, all that ended), over the days that promotion looks at."""
    start = datetime.datetime.combine(today - NOTED_DAYS * DAY, datetime.time(), datetime.UTC)
    ended = Job.objects.filter(
        repository__in=pks, event_type=PULL_REQUESTS, first_seen_at__gte=start, status=JobStatus.COMPLETED
    )
    proven = Count("pk", filter=Q(verdict=Proof.VERIFIED))
    rows = ended.values_list("repository").annotate(proven=proven, all=Count("pk"))
    return {pk: (verified, number) for pk, verified, number in rows}


# --- what a reviewer has to say something about -----------------------------------------------------------------


def notes_of(repositories: Iterable[Repository], *, now: datetime.datetime) -> Mapping[int, tuple[str, ...]]:
    """By repository (primary key): that its set of jobs changed, or that its reports execute fewer tests, in the last
    days against as many before."""
    pks = [repository.pk for repository in repositories if repository.level >= OBSERVATION]
    today = datetime.datetime.combine(now.astimezone(datetime.UTC).date(), datetime.time(), datetime.UTC)
    middle, first = today - NOTED_DAYS * DAY, today - 2 * NOTED_DAYS * DAY
    notes: dict[int, tuple[str, ...]] = {}
    for pk, (gone, new) in _job_sets(pks, first, middle).items():
        said = [("jobs that are gone", gone), ("new jobs", new)]
        notes[pk] = tuple(f"In {NOTED_DAYS} days, {what}: {', '.join(names)}." for what, names in said if names)
    for pk, (before, after) in _executed(pks, first, middle).items():
        if before - after > DROP:
            words = f"Executed tests fell from {float(before):.1%} to {float(after):.1%} in {NOTED_DAYS} days."
            notes[pk] = (*notes.get(pk, ()), words)
    return notes


_NAMED_MOST = 5


def _job_sets(
    pks: list[int], first: datetime.datetime, middle: datetime.datetime
) -> dict[int, tuple[list[str], list[str]]]:
    """Names of jobs that were there before `middle` and are not after it, and the other way round; of those only that
    reported on both sides."""
    jobs = Job.objects.filter(repository__in=pks, event_type=PULL_REQUESTS, first_seen_at__gte=first)
    seen: dict[int, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for pk, name, earliest, latest in (
        jobs.values_list("repository", "job_name").annotate(Min("first_seen_at"), Max("first_seen_at")).iterator(2_000)
    ):
        old, new = seen[pk]
        if earliest < middle:
            old.add(name)
        if latest >= middle:
            new.add(name)
    return {
        pk: (_some(before - after), _some(after - before))
        for pk, (before, after) in seen.items()
        if before and after and before != after
    }


def _some(names: set[str]) -> list[str]:
    ordered = sorted(names)
    return ordered if len(ordered) <= _NAMED_MOST else [*ordered[:_NAMED_MOST], f"{len(ordered) - _NAMED_MOST} more"]


def _executed(
    pks: list[int], first: datetime.datetime, middle: datetime.datetime
) -> dict[int, tuple[Fraction, Fraction]]:
    """The median share of names that reports executed, before and after `middle`."""
    rows = Coverage.objects.filter(report__repository__in=pks, report__received_at__gte=first, names__gt=0)
    shares: dict[int, tuple[list[Fraction], list[Fraction]]] = defaultdict(lambda: ([], []))
    for pk, at, executed, names in rows.values_list(
        "report__repository", "report__received_at", "executed", F("names")
    ):
        shares[pk][at >= middle].append(Fraction(executed, names))
    return {pk: (median_low(old), median_low(new)) for pk, (old, new) in shares.items() if old and new}
