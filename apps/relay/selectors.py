"""Reads of the protocol's rows, and the access functions through which every edge gets one."""

import datetime
import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Prefetch, QuerySet
from django.db.models.functions import MD5
from django.http import Http404

from apps.core.permissions import Permission
from apps.platforms.models import Platform
from apps.platforms.policy import PUBLIC_FROM
from apps.platforms.selectors import may_on_platform, member_platforms
from apps.relay.enums import DeliveryState
from apps.relay.models import Callback, Delivery, Dispatch, Job, Rejection
from apps.relay.policy import UNDISPATCHED_EVENTS, worst_bucket


def jobs() -> QuerySet[Job]:
    """Every job, newest first. A job is public: what L1 reports never becomes one."""
    related = Job.objects.select_related("repository__platform", "dispatch__delivery")
    return related.defer("dispatch__delivery__body").order_by("-first_seen_at", "-pk")


def jobs_of_platform(platform: Platform) -> QuerySet[Job]:
    """A platform's jobs, newest first."""
    return jobs().filter(repository__platform=platform)


def job_or_404(public_id: uuid.UUID) -> Job:
    """A job by its public id."""
    try:
        return jobs().get(public_id=public_id)
    except Job.DoesNotExist:
        raise Http404 from None


def callbacks_of(job: Job) -> QuerySet[Callback]:
    """What was said of a job, in order: accepted callbacks and conflicting ones."""
    return job.callbacks.order_by("received_at", "pk")


def private_callbacks(platform: Platform, user: Any) -> QuerySet[Callback] | None:
    """A platform's callbacks from before it was public, newest first; None for who may not see them."""
    if not may_on_platform(user, Permission.CALLBACK_VIEW_PRIVATE, platform):
        return None
    return (
        Callback.objects.filter(repository__platform=platform, job=None)
        .select_related("repository")
        .order_by("-received_at", "-pk")
    )


def sees_rejections(user: Any) -> bool:
    """Whether there is anything in the list of refusals that this user may see."""
    return user.is_authenticated and (user.may(Permission.REJECTION_VIEW) or member_platforms(user).exists())


def rejections_for(user: Any) -> QuerySet[Rejection]:
    """The refusals that a user may see: all for who runs the hub, their platforms' for members, none for others."""
    rejections = Rejection.objects.select_related("repository__platform")
    if user.may(Permission.REJECTION_VIEW):
        return rejections
    return rejections.filter(repository__platform__in=member_platforms(user))


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
    """Each job with `is_superseded`: the same run has a later attempt of the same workflow and job name."""
    later = Job.objects.alias(delivery=MD5("delivery_id")).filter(
        repository=OuterRef("repository"),
        delivery=MD5(OuterRef("delivery_id")),  # as the unique index has it
        run_id=OuterRef("run_id"),
        run_attempt__gt=OuterRef("run_attempt"),
        workflow=OuterRef("workflow"),
        job_name=OuterRef("job_name"),
    )
    return jobs.annotate(is_superseded=Exists(later))


@dataclass(frozen=True)
class Round:
    """One dispatch and the jobs that answered it: what one downstream says of one commit."""

    dispatch: Dispatch
    jobs: list[Job]

    @property
    def current(self) -> list[Job]:
        """Each job by its newest attempt."""
        return [job for job in self.jobs if not job.is_superseded]  # type: ignore[attr-defined]

    @property
    def queue_seconds(self) -> float | None:
        """The longest queue time of its first attempts."""
        for job in self.jobs:
            job.dispatch = self.dispatch
        return max((job.queue_seconds for job in self.jobs if job.queue_seconds is not None), default=None)

    @property
    def bucket(self) -> str:
        """The worst that any of its jobs says; `dispatched` while none has answered."""
        return worst_bucket(job.bucket for job in self.current) or "dispatched"


def _rounds(dispatches: QuerySet[Dispatch]) -> QuerySet[Dispatch]:
    jobs = with_superseded(Job.objects.order_by("workflow", "job_name", "run_attempt", "pk"))
    related = dispatches.select_related("delivery", "repository__platform").defer("delivery__body")
    return related.prefetch_related(Prefetch("jobs", queryset=jobs, to_attr="answers"))


def as_round(dispatch: Dispatch) -> Round:
    """A dispatch that `rounds_…` returned, with its jobs."""
    return Round(dispatch, dispatch.answers)  # type: ignore[attr-defined]


def rounds_of_platform(platform: Platform, event: str) -> QuerySet[Dispatch]:
    """A platform's dispatches of one event, newest first, for `as_round`. Only of repositories that are public now."""
    return _rounds(
        Dispatch.objects.filter(
            repository__platform=platform, repository__level__gte=PUBLIC_FROM, delivery__event=event
        ).order_by("-created_at", "-pk")
    )


def rounds_of_deliveries(deliveries: Iterable[Delivery]) -> dict[int, list[Round]]:
    """By delivery (primary key), every public downstream's round, highest level first."""
    dispatches = _rounds(
        Dispatch.objects.filter(delivery__in=list(deliveries), repository__level__gte=PUBLIC_FROM).order_by(
            "-repository__level", "repository__full_name"
        )
    )
    rounds: dict[int, list[Round]] = defaultdict(list)
    for dispatch in dispatches:
        rounds[dispatch.delivery_id].append(as_round(dispatch))
    return rounds


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
    commit, with those of dispatches of the relay that the hub stands behind."""
    found = with_superseded(jobs()).filter(dispatch=None)
    if platform is not None:
        found = found.filter(repository__platform=platform, event_type__in=UNDISPATCHED_EVENTS)
    return found.filter(head_sha__startswith=sha) if sha else found


def relayed_jobs_of_pull_request(number: int) -> QuerySet[Job]:
    """Jobs about a pull request that the hub dispatched nothing for: the relay did, newest first."""
    return with_superseded(jobs()).filter(dispatch=None, pr_number=number)


def newest_change_of(platform: Platform) -> tuple[object, ...]:
    """What a platform's list of jobs stands on: its newest callback and dispatch."""
    callback = Callback.objects.filter(repository__platform=platform).order_by("-pk").values_list("pk", flat=True)
    dispatch = Dispatch.objects.filter(repository__platform=platform).order_by("-pk").values_list("pk", flat=True)
    return callback.first(), dispatch.first()


def latest_delivery_at() -> datetime.datetime | None:
    """When the newest webhook was stored: how old the hub's view of upstream is."""
    return Delivery.objects.order_by("-pk").values_list("received_at", flat=True).first()
