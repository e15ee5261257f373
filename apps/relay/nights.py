"""Nightly and periodic jobs as one row a night: by the upstream commit that they are about, else by their run."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Case, CharField, F, Max, Q, QuerySet, Value, When
from django.db.models.functions import Cast, Concat

from apps.platforms.models import Platform
from apps.relay.enums import Flag
from apps.relay.models import Job
from apps.relay.policy import UNDISPATCHED_EVENTS, worst_bucket
from apps.relay.selectors import with_superseded

# A commit that upstream does not know, or that nobody named, brings nothing together.
_IS_REAL = ~Q(head_sha="") & ~Q(flags__contains=[Flag.UNKNOWN_COMMIT])
_KEY = Case(
    When(_IS_REAL, then=F("head_sha")),
    default=Concat(Cast("repository_id", CharField()), Value(":"), F("run_id")),
    output_field=CharField(),
)
# What another relay dispatched is no night's, though this hub dispatched it neither.
_NIGHTLY = Q(dispatch=None, event_type__in=UNDISPATCHED_EVENTS)


@dataclass(frozen=True)
class Night:
    """The nightly and periodic jobs of one commit, or of one run that names no real one."""

    jobs: list[Job]

    @property
    def first(self) -> Job:
        return self.jobs[0]

    @property
    def current(self) -> list[Job]:
        """Each job by its newest attempt, without those that are held."""
        return [job for job in self.jobs if not job.is_superseded and not job.is_held]  # type: ignore[attr-defined]

    @property
    def bucket(self) -> str | None:
        """The worst that any of its jobs says; None where all are held."""
        return worst_bucket(job.bucket for job in self.current)


def night_keys(platform: Platform) -> QuerySet[Job, str]:
    """What brings a platform's nightly jobs together, the newest night first, for `nights_of`."""
    jobs = Job.objects.filter(_NIGHTLY, repository__platform=platform).annotate(night=_KEY)
    return (
        jobs.values("night")
        .annotate(newest=Max("first_seen_at"))
        .order_by("-newest", "night")
        .values_list("night", flat=True)
    )


def nights_of(platform: Platform, keys: Iterable[str]) -> list[Night]:
    """These nights of a platform, in this order."""
    nights: dict[str, list[Job]] = {key: [] for key in keys}
    jobs = Job.objects.filter(_NIGHTLY, repository__platform=platform).annotate(night=_KEY)
    for job in with_superseded(jobs.filter(night__in=list(nights))).order_by("-first_seen_at", "-pk"):
        nights[job.night].append(job)  # type: ignore[attr-defined]
    return [Night(found) for found in nights.values()]
