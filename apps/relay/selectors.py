"""Reads of the protocol's rows, and the access functions through which every edge gets one."""

import datetime
import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import BooleanField, Count, Exists, Min, OuterRef, Prefetch, Q, QuerySet, Subquery, TextField
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce
from django.http import Http404

from apps.core.permissions import Permission
from apps.platforms.models import Platform, Repository, Transfer
from apps.platforms.policy import LEVELS, PUBLIC_FROM, UNLISTED
from apps.platforms.selectors import level_then, may_on_platform, member_platforms, open_windows, probes
from apps.relay.counted import counts_as_sql, superseded_by_sql
from apps.relay.enums import Answer, DeliveryState, DispatchState, Flag
from apps.relay.models import (
    Acknowledgement,
    Callback,
    DeclaredOutcome,
    Delivery,
    Dispatch,
    Job,
    Omission,
    Rejection,
    TimeLimit,
)
from apps.relay.policy import RED, UNDISPATCHED_EVENTS, Wishes, is_answered, silent_hours, worst_bucket
from apps.relay.superseding import superseded_sql

# What is said to have happened lately.
LATELY = datetime.timedelta(hours=24)
_KEY_DIGITS = 18  # any such number fits a bigint

# A dispatch is sent, or given up, within minutes: older ones do not change.
_DISPATCHES_LOOKED_AT = 20


def is_key(text: str) -> bool:
    """Whether a text that a form brought can be a primary key."""
    return text.isascii() and text.isdigit() and len(text) <= _KEY_DIGITS


def jobs() -> QuerySet[Job]:
    """Every job, newest first. A job is public: what L1 reports never becomes one."""
    related = Job.objects.select_related("repository__platform", "dispatch__delivery")
    return related.defer("dispatch__delivery__body").order_by("-first_seen_at", "-pk")


def jobs_of_platform(platform: Platform) -> QuerySet[Job]:
    """A platform's jobs, newest first."""
    return jobs().filter(repository__platform=platform)


def held_jobs(transfer: Transfer) -> QuerySet[Job]:
    """What was sent under a repository's new owner and is held, newest first."""
    said_so = Callback.objects.filter(
        job=OuterRef("pk"), claims__repository_owner_id=str(transfer.new_owner_id), answer=Answer.HELD
    )
    held = jobs().filter(Exists(said_so), repository=transfer.repository, flags__contains=[Flag.HELD])
    return with_superseded(held)


def job_or_404(public_id: uuid.UUID) -> Job:
    """A job by its public id, as `with_counts` has it."""
    try:
        return with_counts(jobs()).get(public_id=public_id)
    except Job.DoesNotExist:
        raise Http404 from None


def callbacks_of(job: Job) -> QuerySet[Callback]:
    """What was said of a job, in order: accepted callbacks and conflicting ones."""
    return job.callbacks.order_by("received_at", "pk")


def ran_on_buildkite(repository: Repository, *, head_sha: str, run_id: str) -> bool:
    """Whether a run about this commit was reported with Buildkite's tokens: it is a build there, and no run of GitHub
    Actions."""
    told = Callback.objects.filter(job__head_sha=head_sha, job__repository=repository, job__run_id=run_id)
    return told.filter(claims__has_key="pipeline_id").exists()


def private_callbacks(platform: Platform, user: Any) -> QuerySet[Callback] | None:
    """A platform's callbacks from before it was public, newest first; None for who may not see them."""
    if not may_on_platform(user, Permission.CALLBACK_VIEW_PRIVATE, platform):
        return None
    return (
        Callback.objects.filter(repository__platform=platform, job=None)
        .select_related("repository")
        .order_by("-received_at", "-pk")
    )


def limits_of(repository: Repository) -> QuerySet[TimeLimit]:
    """What a repository has declared for its silent jobs, the limit of all jobs first."""
    return TimeLimit.objects.filter(repository=repository).select_related("repository")


def limit_or_404(repository: Repository, pk: str) -> TimeLimit:
    """One of a repository's declared limits."""
    try:
        return limits_of(repository).get(pk=int(pk))
    except (TimeLimit.DoesNotExist, ValueError, OverflowError):
        raise Http404 from None


def declared_of(repository: Repository) -> QuerySet[DeclaredOutcome]:
    """What maintainers declared of a repository's jobs, newest first, withdrawn ones included."""
    return DeclaredOutcome.objects.filter(repository=repository).select_related("repository")


def declared_or_404(repository: Repository, public_id: str) -> DeclaredOutcome:
    """One of a repository's declarations."""
    try:
        return declared_of(repository).get(public_id=public_id)
    except (DeclaredOutcome.DoesNotExist, ValidationError):
        raise Http404 from None


def sees_rejections(user: Any) -> bool:
    """Whether there is anything in the list of refusals that this user may see."""
    return user.is_authenticated and (user.may(Permission.REJECTION_VIEW) or member_platforms(user).exists())


def rejections_for(user: Any) -> QuerySet[Rejection]:
    """The refusals that a user may see: all for who runs the hub, their platforms' for members, none for others."""
    rejections = Rejection.objects.select_related("repository__platform")
    if user.may(Permission.REJECTION_VIEW):
        return rejections
    return rejections.filter(repository__platform__in=member_platforms(user))


def rejected_lately(*, now: datetime.datetime) -> QuerySet[Rejection]:
    """Callers, by reason, that were refused in the last LATELY."""
    return Rejection.objects.filter(last_seen__gte=now - LATELY)


def silent_probes(*, now: datetime.datetime) -> list[Repository]:
    """The hub's own probes that are silent, as policy.silent_hours defines it. Two queries."""
    known = list(probes())
    last = last_callbacks(known, sees_private=True)
    return [probe for probe in known if probe.level and silent_hours(last[probe.pk], now)]


def repositories_with_wishes() -> QuerySet[Repository]:
    """Listed repositories by name, each with its participation and `limits_declared`."""
    listed = Repository.objects.filter(level__gt=UNLISTED).select_related("platform", "participation")
    return listed.annotate(limits_declared=Count("time_limits")).order_by("full_name")


@dataclass(frozen=True)
class Wishing:
    """A listed repository and what it takes part in."""

    repository_id: int
    wishes: Wishes


def wishes_of_listed(*, now: datetime.datetime, pr_number: int | None) -> list[Wishing]:
    """Every listed repository with what it takes part in at this time, and whether it was dispatched an event of this
    pull request. Three queries; two where there is none."""
    sent = Dispatch.objects.filter(delivery__pr_number=pr_number).values_list("repository", flat=True)
    sent_to = set() if pr_number is None else set(sent)
    listed = Repository.objects.filter(level__gt=UNLISTED).select_related("participation").order_by("pk")
    windows = dict(open_windows(now=now).values_list("repository", "ends_at"))
    found = []
    for repository in listed:
        chosen = getattr(repository, "participation", None)
        narrowed = {}
        if chosen is not None:
            narrowed = {
                "events": tuple(chosen.events),
                "refs": tuple(chosen.refs),
                "labels": tuple(chosen.labels),
                "sample_percent": chosen.sample_percent,
            }
        wishes = Wishes(
            key=str(repository.public_id),
            listed=tuple(repository.events),
            maintenance_until=windows.get(repository.pk),
            was_sent=repository.pk in sent_to,
            **narrowed,
        )
        found.append(Wishing(repository.pk, wishes))
    return found


@dataclass(frozen=True)
class RejectionFilters:
    """Which refusals: why, and of which repository (as its token said)."""

    code: str = ""
    repository: str = ""
    sort: str = "-last_seen"


REJECTION_ORDERS = {
    "last_seen": ("last_seen", "pk"),
    "-last_seen": ("-last_seen", "-pk"),
    "count": ("count", "pk"),
    "-count": ("-count", "-pk"),
}


def rejections_found(user: Any, filters: RejectionFilters) -> QuerySet[Rejection]:
    """Of the refusals that a user may see, those that fit."""
    found = rejections_for(user).order_by(*REJECTION_ORDERS[filters.sort])
    if filters.code:
        found = found.filter(code=filters.code)
    return found.filter(repository_claim__icontains=filters.repository) if filters.repository else found


def with_superseded(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Each job with `is_superseded`, as apps/relay/superseding.py defines it."""
    is_superseded = RawSQL(superseded_sql("relay_job"), [], output_field=BooleanField())  # noqa: S611  a constant
    return jobs.annotate(is_superseded=is_superseded)


def with_counts(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Each job with `counts_as` and `superseded_by` (None: nothing), as apps/relay/counted.py defines them."""
    counts_as = RawSQL(counts_as_sql("relay_job"), [], output_field=TextField())  # noqa: S611  a constant
    superseded_by = RawSQL(superseded_by_sql("relay_job"), [], output_field=TextField())  # noqa: S611  a constant
    return jobs.annotate(counts_as=counts_as, superseded_by=superseded_by)


@dataclass(frozen=True)
class JobFilters:
    """Which jobs: whole names, in any case of letters for a repository, and whole numbers."""

    repository: str = ""
    delivery: str = ""
    run_id: str = ""
    pr: int | None = None
    event: str = ""


def jobs_found(filters: JobFilters) -> QuerySet[Job]:
    """The jobs that fit, newest first, each as `with_counts` has it. Those of probes are in no list."""
    found = with_counts(jobs()).filter(repository__is_probe=False)
    if filters.repository:
        found = found.filter(repository__full_name__iexact=filters.repository)
    if filters.delivery:
        found = found.filter(delivery_id=filters.delivery)
    if filters.run_id:
        found = found.filter(run_id=filters.run_id)
    if filters.pr is not None:
        found = found.filter(pr_number=filters.pr)
    return found.filter(event_type=filters.event) if filters.event else found


@dataclass(frozen=True)
class Round:
    """One dispatch and the jobs that answered it: what one downstream says of one commit."""

    dispatch: Dispatch
    jobs: list[Job]

    @property
    def current(self) -> list[Job]:
        """Each job by its newest attempt, without those that are held."""
        return [job for job in self.jobs if not job.is_superseded and not job.is_held]  # type: ignore[attr-defined]

    @property
    def queue_seconds(self) -> float | None:
        """The longest queue time of its first attempts."""
        for job in self.jobs:
            job.dispatch = self.dispatch
        seconds = (job.queue_seconds for job in self.jobs if not job.is_held)
        return max((each for each in seconds if each is not None), default=None)

    @property
    def acknowledged(self) -> list[tuple[Job, Acknowledgement]]:
        """What oncalls say of its red jobs, in order."""
        return [(job, said) for job in self.current if job.bucket in RED for said in job.acknowledgements.all()]

    @property
    def asks_for_nothing(self) -> bool:
        """Whether nobody is asked to run something: it only tells that a pull request was closed."""
        return not is_answered(self.dispatch.delivery.event, self.dispatch.delivery.action)

    @property
    def was_private(self) -> bool:
        """Whether it was sent while its repository's answers were private: none of them ever becomes public."""
        level = self.dispatch.sent_level  # type: ignore[attr-defined]
        return level is not None and level < PUBLIC_FROM

    @property
    def no_answer(self) -> str:
        """What is to be said while none of its jobs has answered."""
        if self.asks_for_nothing:
            return "no answer expected"
        if self.was_private:
            return f"sent at {LEVELS[self.dispatch.sent_level].code}, where answers are private"  # type: ignore[attr-defined]
        return "no answer yet"

    @property
    def bucket(self) -> str:
        """The worst that any of its jobs says. While none has answered: `dispatched`, or why it was not sent yet;
        empty where no answer, or no public one, is expected."""
        if worst := worst_bucket(job.bucket for job in self.current):
            return worst
        if self.dispatch.state != DispatchState.SENT:
            return str(self.dispatch.state)
        return "" if self.asks_for_nothing or self.was_private else "dispatched"


def _rounds(dispatches: QuerySet[Dispatch]) -> QuerySet[Dispatch]:
    jobs = with_superseded(Job.objects.order_by("workflow", "job_name", "run_attempt", "pk"))
    jobs = jobs.prefetch_related("acknowledgements")
    related = dispatches.select_related("delivery", "repository__platform").defer("delivery__body")
    related = related.alias(left_at=Coalesce("sent_at", "created_at")).annotate(sent_level=level_then("left_at"))
    return related.prefetch_related(Prefetch("jobs", queryset=jobs, to_attr="answers"))


def as_round(dispatch: Dispatch) -> Round:
    """A dispatch that `rounds_…` returned, with its jobs."""
    return Round(dispatch, dispatch.answers)  # type: ignore[attr-defined]


# What was public stays so when its repository is lowered; what L1 was sent is nobody's business.
_IS_PUBLIC = Q(repository__level__gte=PUBLIC_FROM) | Exists(Job.objects.filter(dispatch=OuterRef("pk")))


def rounds_of_platform(platform: Platform, event: str) -> QuerySet[Dispatch]:
    """A platform's public dispatches of one event, newest first, for `as_round`."""
    return _rounds(
        Dispatch.objects.filter(_IS_PUBLIC, repository__platform=platform, delivery__event=event).order_by(
            "-created_at", "-pk"
        )
    )


def newest_rounds(repositories: Iterable[Repository], count: int) -> dict[int, list[Round]]:
    """By repository (primary key), its newest rounds. One query for each: only probes, which are few, are asked for."""
    return {
        repository.pk: [
            as_round(dispatch)
            for dispatch in _rounds(Dispatch.objects.filter(repository=repository).order_by("-created_at", "-pk"))[
                :count
            ]
        ]
        for repository in repositories
    }


def backlog(*, now: datetime.datetime) -> dict[str, tuple[int, datetime.datetime | None]]:
    """What the relay has to do and has not done: by name, how much, and since when the oldest of it is due."""
    queues: dict[str, tuple[QuerySet[Any], str]] = {
        "Deliveries to fan out": (Delivery.objects.filter(state=DeliveryState.RECEIVED), "received_at"),
        "Dispatches to send": (
            Dispatch.objects.filter(state__in=[DispatchState.PENDING, DispatchState.SENDING]),
            "changed_at",
        ),
        "Conclusions to look up at GitHub": (Job.objects.filter(look_up_at__lte=now), "look_up_at"),
    }
    return {
        title: tuple(rows.aggregate(count=Count("pk"), oldest=Min(since)).values())
        for title, (rows, since) in queues.items()
    }


def rounds_of_deliveries(deliveries: Iterable[Delivery]) -> dict[int, list[Round]]:
    """By delivery (primary key), every public downstream's round, highest level first."""
    dispatches = _rounds(
        Dispatch.objects.filter(_IS_PUBLIC, delivery__in=list(deliveries), repository__is_probe=False).order_by(
            "-repository__level", "repository__full_name"
        )
    )
    rounds: dict[int, list[Round]] = defaultdict(list)
    for dispatch in dispatches:
        rounds[dispatch.delivery_id].append(as_round(dispatch))
    return rounds


def omissions_of_deliveries(deliveries: Iterable[Delivery]) -> dict[int, list[Omission]]:
    """By delivery (primary key), the public downstreams that it was not sent to, by name, each with why."""
    found = Omission.objects.filter(
        delivery__in=list(deliveries), repository__level__gte=PUBLIC_FROM, repository__is_probe=False
    )
    omissions: dict[int, list[Omission]] = defaultdict(list)
    for omission in found.select_related("repository__platform").order_by("repository__full_name"):
        omissions[omission.delivery_id].append(omission)
    return omissions


def deliveries_of_pull_request(number: int) -> QuerySet[Delivery]:
    """What was sent on about a pull request, newest first."""
    found = Delivery.objects.filter(pr_number=number, state=DeliveryState.FANNED_OUT)
    return found.defer("body").order_by("-received_at", "-pk")


def deliveries_of_commit(sha: str) -> QuerySet[Delivery]:
    """What was sent on about a commit (whole, or its first 7 characters or more), newest first."""
    found = Delivery.objects.filter(head_sha__startswith=sha, state=DeliveryState.FANNED_OUT)
    return found.defer("body").order_by("-received_at", "-pk")


def undispatched_jobs(*, platform: Platform | None = None, sha: str = "") -> QuerySet[Job]:
    """Jobs that the hub dispatched nothing for, newest first: a platform's nightly and periodic ones; or all about a
    commit unless upstream lacks it, with those of dispatches of the relay that the hub stands behind."""
    found = with_superseded(jobs()).filter(dispatch=None)
    if platform is not None:
        found = found.filter(repository__platform=platform, event_type__in=UNDISPATCHED_EVENTS)
    if sha:
        found = found.filter(head_sha__startswith=sha, repository__is_probe=False)
        found = found.exclude(flags__contains=[Flag.UNKNOWN_COMMIT])
    return found


def last_callbacks(repositories: Iterable[Repository], *, sees_private: bool) -> dict[int, datetime.datetime | None]:
    """By repository (primary key), when the newest callback came that was kept: public or conflicting, and for whom
    `sees_private` private. What a new owner sends ends no silence before that owner is accepted."""
    stranger = Transfer.objects.annotate(owner=Cast("new_owner_id", TextField())).filter(
        repository=OuterRef("repository"),
        owner=OuterRef("owner"),
        opened_at__lte=OuterRef("received_at"),
    )
    heard = Callback.objects.alias(owner=KT("claims__repository_owner_id")).filter(repository=OuterRef("pk"))
    if not sees_private:
        heard = heard.filter(job__isnull=False)
    newest = heard.exclude(Exists(stranger.exclude(state=Transfer.State.ACCEPTED))).order_by("-received_at")
    found = Repository.objects.filter(pk__in=[repository.pk for repository in repositories])
    return dict(
        found.annotate(last_callback_at=Subquery(newest.values("received_at")[:1])).values_list(
            "pk", "last_callback_at"
        )
    )


def relayed_jobs_of_pull_request(number: int) -> QuerySet[Job]:
    """Jobs about a pull request that the hub dispatched nothing for: the relay did, newest first."""
    return with_superseded(jobs()).filter(dispatch=None, pr_number=number, repository__is_probe=False)


def newest_change_of(platform: Platform) -> tuple[object, ...]:
    """What a platform's list of jobs stands on: its levels, its newest public callback, the hub's newest judgement of a
    job, its newest dispatches.

    Nothing private moves it: a visitor who asks again and again learns nothing of what stands below L2. A job is public
    whatever became of its repository's level.
    """
    levels = tuple(Repository.objects.filter(platform=platform).order_by("pk").values_list("pk", "level"))
    every = [pk for pk, _ in levels]
    public = [pk for pk, level in levels if level >= PUBLIC_FROM]
    callbacks = Callback.objects.filter(repository__in=every, job__isnull=False).order_by("-pk")
    judged = Job.objects.filter(repository__in=every, judged_at__isnull=False).order_by("-judged_at")
    dispatches = Dispatch.objects.filter(repository__in=public).order_by("-created_at", "-pk")
    newest = tuple(dispatches.values_list("pk", "state")[:_DISPATCHES_LOOKED_AT])
    return (
        levels,
        callbacks.values_list("pk", flat=True).first(),
        judged.values_list("judged_at", "pk").first(),
        newest,
    )


def latest_delivery_at() -> datetime.datetime | None:
    """When the newest webhook was stored: how old the hub's view of upstream is."""
    return Delivery.objects.order_by("-pk").values_list("received_at", flat=True).first()


@dataclass(frozen=True)
class DispatchFilters:
    """Which dispatches. `delivery` is GitHub's id, whole; `repository` is part of a name. Without a state and a
    delivery: those that are not sent."""

    state: str = ""
    delivery: str = ""
    repository: str = ""


def dispatches_found(filters: DispatchFilters) -> QuerySet[Dispatch]:
    """Dispatches for operators, newest first."""
    found = Dispatch.objects.select_related("delivery", "repository__platform").defer("delivery__body")
    if filters.state:
        found = found.filter(state=filters.state)
    elif not filters.delivery:
        found = found.exclude(state=DispatchState.SENT)
    if filters.delivery:
        found = found.filter(delivery__delivery_id=filters.delivery)
    if filters.repository:
        found = found.filter(repository__full_name__icontains=filters.repository)
    return found.order_by("-pk")


def omissions_found(filters: DispatchFilters) -> QuerySet[Omission]:
    """Which listed repositories the named delivery was not sent to, by name."""
    found = Omission.objects.select_related("repository__platform").filter(delivery__delivery_id=filters.delivery)
    return found.order_by("repository__full_name")


def dispatch_or_404(key: str) -> Dispatch:
    """A dispatch by its key, for those who may send it again."""
    if not is_key(key):
        raise Http404
    try:
        return Dispatch.objects.select_related("delivery", "repository").defer("delivery__body").get(pk=int(key))
    except Dispatch.DoesNotExist:
        raise Http404 from None
