"""Background tasks of checks: each fetches by key, calls one service, and may run twice without harm."""

from celery import shared_task

from apps.checks import outbox, reruns, services
from apps.checks.enums import SendState
from apps.checks.models import Check, Rerun
from apps.checks.policy import SCOPES
from apps.checks.selectors import may_publish
from apps.checks.topics import CHECK_PENDING, RERUN_PENDING
from apps.core import rounds
from apps.core.clock import now
from apps.relay.models import Delivery

# Wake-up handlers. These three are a bounded piece of database work each, done on the spot: no message can be lost.


def look_at_jobs(keys: list[str]) -> None:
    """Of `job_for_checks`."""
    services.look_at_jobs([int(key.partition(":")[0]) for key in keys], now=now())


def look_at_deliveries(keys: list[str]) -> None:
    """Of `delivery_for_checks`, those of a commit in the order in which they came."""
    # Commit by commit, as jobs are looked at: two workers wait for each other's locks in one order.
    found = Delivery.objects.filter(pk__in=[int(key) for key in keys]).order_by("head_sha", "pk")
    for pk, event in found.values_list("pk", "event"):
        if event in SCOPES:
            reruns.request_reruns(delivery_pk=pk, now=now())
        else:
            services.look_at_pull_request(delivery_pk=pk, now=now())


def look_at_repositories(keys: list[str]) -> None:
    """Of `listing_for_checks`."""
    for key in keys:
        services.look_at_repository(repository_id=int(key), now=now())


def look_at_commits(keys: list[str]) -> None:
    """Of `gate_changed`."""
    for sha in keys:
        services.look_at_commit(head_sha=sha, now=now())


def look_at_breakers(keys: list[str]) -> None:
    """Of `breaker_changed`."""
    for key in keys:
        services.look_at_breaker(repository_id=int(key), now=now())


def enqueue_checks(keys: list[str]) -> None:
    """Of `check_pending`."""
    for key in keys:
        send_check.delay(int(key))


def enqueue_reruns(keys: list[str]) -> None:
    """Of `rerun_pending`."""
    for key in keys:
        send_rerun.delay(int(key))


@shared_task
def send_check(check_pk: int) -> SendState | None:
    """Send one check run."""
    return services.send_check(check_pk=check_pk, now=now())


@shared_task
def send_rerun(rerun_pk: int) -> SendState | None:
    """Send one re-run."""
    return reruns.send_rerun(rerun_pk=rerun_pk, now=now())


@shared_task
def sweep_checks() -> int:
    """Wake check runs and re-runs whose task was lost, or whose next attempt is due."""
    if not may_publish():
        rounds.off()
        return 0
    moment = now()
    return outbox.sweep(Check, CHECK_PENDING, now=moment) + outbox.sweep(Rerun, RERUN_PENDING, now=moment)
