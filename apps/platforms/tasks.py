"""Background tasks of platforms."""

import logging

from celery import shared_task

from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.github import GitHubRefused, GitHubUnavailable, client
from apps.platforms.models import NameChange, Repository
from apps.platforms.policy import UNLISTED
from apps.platforms.renames import confirm_name as confirm
from apps.platforms.services import pin_identity

log = logging.getLogger(__name__)


def enqueue_pinning(keys: list[str]) -> None:
    """Wake-up handler of `repository_unpinned`."""
    for key in keys:
        pin_repository.delay(int(key))


@shared_task
def pin_repository(repository_id: int) -> None:
    """Ask GitHub which numeric ids a listed name stands for. Where it cannot say, the first callback asks again."""
    repository = Repository.objects.get(pk=repository_id)
    if repository.pin_source == Repository.PinSource.GITHUB_API:
        return
    try:
        identity = client().repository_identity(repository.full_name)
    except (GitHubRefused, GitHubUnavailable) as error:
        log.warning("%s stays unpinned: %s", repository.full_name, error)
        return
    try:
        pin_identity(repository_id=repository_id, identity=identity, source=Repository.PinSource.GITHUB_API, now=now())
    except Problem as problem:
        log.error("%s stays unpinned: %s", repository.full_name, problem.detail)


@shared_task
def pin_the_unpinned() -> int:
    """Ask again about listed repositories that GitHub has not confirmed yet. Returns how many are asked about."""
    waiting = Repository.objects.filter(level__gt=UNLISTED).exclude(pin_source=Repository.PinSource.GITHUB_API)
    keys = list(waiting.values_list("pk", flat=True))
    for key in keys:
        pin_repository.delay(key)
    return len(keys)


def enqueue_names(keys: list[str]) -> None:
    """Wake-up handler of `repository_renamed`."""
    for key in keys:
        confirm_name.delay(int(key))


@shared_task
def confirm_name(change_pk: int) -> bool:
    """Ask GitHub whether a repository is called as its token said. Where it cannot say, it is asked again later."""
    change = NameChange.objects.filter(pk=change_pk, confirmed_at=None).first()
    if change is None:
        return False
    try:
        return confirm(change=change, found=client().repository_identity(change.new_name), now=now())
    except (GitHubRefused, GitHubUnavailable) as error:
        log.warning("%s: not confirmed: %s", change, error)
    except Problem as problem:
        log.error("%s: %s", change, problem.detail)
    return False


@shared_task
def confirm_names() -> int:
    """Ask again about new names that GitHub has not confirmed yet. Returns how many are asked about."""
    keys = list(NameChange.objects.filter(confirmed_at=None).values_list("pk", flat=True))
    for key in keys:
        confirm_name.delay(key)
    return len(keys)
