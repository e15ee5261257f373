"""Reads of check runs and of what they stand on."""

import uuid
from collections.abc import Iterable

from django.conf import settings
from django.db.models import Q, QuerySet
from django.http import Http404

from apps.checks.enums import SendState
from apps.checks.models import Check, Rerun
from apps.checks.policy import Leg
from apps.platforms.models import Repository
from apps.relay import modes
from apps.relay.checknames import name_of, repository_in
from apps.relay.enums import Bucket, Flag
from apps.relay.models import Job
from apps.relay.selectors import with_superseded

UNSENT = Q(state__in=[SendState.PENDING, SendState.SENDING, SendState.GIVEN_UP])


def may_publish() -> bool:
    """Whether this hub says anything on upstream's pull requests: its mode publishes, and it has an App. The one place
    where that is asked; of one name, `adoption_selectors.holder` too."""
    return modes.current().publishes_checks and bool(settings.GITHUB_APP_ID and settings.GITHUB_APP_PRIVATE_KEY)


def name_at(repository: Repository, checks: Iterable[Check]) -> str:
    """The repository's name in those of its check runs at one commit, which are `checks`: the one that the first of
    them has. So a rename in between leaves one check run of each job, and none behind that nobody ends."""
    first = min(checks, key=lambda check: check.pk, default=None)
    return repository_in(first.name) if first else repository.full_name


def legs_by_name(repository: Repository, head_sha: str, full_name: str) -> dict[str, list[Leg]]:
    """A repository's jobs about a pull request at this commit, by the name of their check run, in which the repository
    is called `full_name`.

    Of each name those that the newest dispatch brought, superseded attempts left out. What a closing pull request, a
    push, a nightly or a periodic run brings is about no pull request that waits for it. What is held nobody is told.
    """
    jobs = with_superseded(
        Job.objects.filter(repository=repository, head_sha=head_sha, pr_number__isnull=False)
        .exclude(dispatch=None)
        .exclude(flags__contains=[Flag.HELD])
        .exclude(dispatch__delivery__action="closed")
        .order_by("-dispatch", "pk")
    )
    found: dict[str, list[Job]] = {}
    for job in jobs:
        legs = found.setdefault(name_of(full_name, job.workflow, job.job_name), [])
        if not job.is_superseded and (not legs or legs[0].dispatch_id == job.dispatch_id):  # type: ignore[attr-defined]
            legs.append(job)
    return {name: [leg_of(job) for job in jobs] for name, jobs in found.items() if jobs}


def has_held_job(check: Check) -> bool:
    """Whether the job that a check run leads to is held: its repository's new owner waits for a decision."""
    return check.job is not None and check.job.is_held


def leg_of(job: Job) -> Leg:
    """A job, as its check run tells of it."""
    assert job.pr_number is not None
    if job.total is None:
        counts = "not reported"
    else:
        parts = ((job.passed, "passed"), (job.failed, "failed"), (job.skipped, "skipped"))
        counts = ", ".join(f"{number:,} {word}" for number, word in parts if number is not None) + f" of {job.total:,}"
    return Leg(
        job_pk=job.pk,
        bucket=Bucket(job.bucket),
        conclusion=job.conclusion,
        run_id=job.run_id,
        run_attempt=job.run_attempt,
        pr_number=job.pr_number,
        failed=job.failed,
        total=job.total,
        counts=counts,
        remarks=tuple(job.flag_labels),
    )


def check_of(job: Job) -> Check | None:
    """The check run that tells of a job; None where there is none."""
    if job.pr_number is None or not job.head_sha:
        return None
    found = Check.objects.filter(head_sha=job.head_sha, repository=job.repository_id).defer("summary")
    checks = {check.name: check for check in found}
    return checks.get(name_of(name_at(job.repository, checks.values()), job.workflow, job.job_name))


def checks_of_commits(shas: Iterable[str]) -> QuerySet[Check]:
    """The check runs at these commits, by name, without those of probes."""
    found = Check.objects.filter(head_sha__in=set(shas) - {""}, repository__is_probe=False)
    return found.select_related("repository__platform", "job").order_by("name", "head_sha")


def unsent_checks() -> QuerySet[Check]:
    """Check runs that GitHub does not show as they should be, the oldest change first."""
    return Check.objects.filter(UNSENT).select_related("repository", "job").order_by("changed_at", "pk")


def given_up_checks() -> QuerySet[Check]:
    """Those of them that nobody tries again by itself."""
    return unsent_checks().filter(state=SendState.GIVEN_UP)


def unsent_reruns() -> QuerySet[Rerun]:
    """Re-runs that wait, or that GitHub or the hub refused, the newest first."""
    return Rerun.objects.exclude(state=SendState.SENT).select_related("repository").order_by("-created_at", "-pk")


def check_or_404(public_id: uuid.UUID) -> Check:
    """A check run by its public id."""
    try:
        return Check.objects.select_related("repository").get(public_id=public_id)
    except Check.DoesNotExist:
        raise Http404 from None
