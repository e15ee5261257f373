"""Reads of the protocol's rows, and the access functions through which every edge gets one."""

import datetime
import uuid
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, Q, QuerySet
from django.db.models.functions import Greatest
from django.http import Http404

from apps.core.permissions import Permission
from apps.platforms.models import Platform
from apps.platforms.selectors import may_on_platform, member_platforms
from apps.relay.enums import Bucket, JobStatus
from apps.relay.models import Callback, Delivery, Job, Rejection


def jobs() -> QuerySet[Job]:
    """Every job, newest first. A job is public: what L1 reports never becomes one."""
    return Job.objects.select_related("repository__platform", "dispatch__delivery").order_by("-first_seen_at", "-pk")


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
class JobFigures:
    """Counts of one platform's jobs. `ended` are completed ones of any bucket, `green` those in `success`."""

    jobs: int
    ended: int
    green: int
    running: int
    last_callback: datetime.datetime


def job_figures(*, since: datetime.datetime) -> dict[int, JobFigures]:
    """Per platform (primary key), the jobs first seen at `since` or later. A platform without any is left out."""
    rows = (
        Job.objects.filter(first_seen_at__gte=since)
        .order_by()
        .values("repository__platform")
        .annotate(
            jobs=Count("pk"),
            ended=Count("pk", filter=Q(status=JobStatus.COMPLETED)),
            green=Count("pk", filter=Q(bucket=Bucket.SUCCESS)),
            running=Count("pk", filter=Q(status=JobStatus.IN_PROGRESS)),
            last_callback=Greatest(Max("first_seen_at"), Max("completed_at")),
        )
    )
    return {
        row["repository__platform"]: JobFigures(
            row["jobs"], row["ended"], row["green"], row["running"], row["last_callback"]
        )
        for row in rows
    }


def latest_delivery() -> Delivery | None:
    """The newest webhook stored: how old the hub's view of upstream is."""
    return Delivery.objects.order_by("-received_at").first()
