"""Background tasks of platforms."""

import logging

from celery import shared_task

from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.github import GitHubRefused, GitHubUnavailable, client
from apps.platforms import authority, edits, sync
from apps.platforms.models import Repository
from apps.platforms.policy import UNLISTED
from apps.platforms.services import note_refusal, pin_identity

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
        note_refusal(repository_id=repository_id, words=str(error), now=now())
        return
    try:
        pin_identity(repository_id=repository_id, identity=identity, source=Repository.PinSource.GITHUB_API, now=now())
    except Problem as problem:
        log.error("%s stays unpinned: %s", repository.full_name, problem.detail)
        note_refusal(repository_id=repository_id, words=problem.detail, now=now())


@shared_task
def pin_the_unpinned() -> int:
    """Ask again about listed repositories that GitHub has not confirmed yet. Returns how many are asked about."""
    waiting = Repository.objects.filter(level__gt=UNLISTED).exclude(pin_source=Repository.PinSource.GITHUB_API)
    keys = list(waiting.values_list("pk", flat=True))
    for key in keys:
        pin_repository.delay(key)
    return len(keys)


def enqueue_edits(keys: list[str]) -> None:
    """Wake-up handler of `allowlist_edit_pending`."""
    for key in keys:
        open_pull_request.delay(int(key))


def enqueue_sync(keys: list[str]) -> None:
    """Wake-up handler of `allowlist_sync_wanted`."""
    sync_allowlist.delay()


@shared_task
def open_pull_request(edit_pk: int) -> str | None:
    """Open the pull request of one decision."""
    return edits.open_pull_request(edit_pk=edit_pk, now=now())


@shared_task
def sync_allowlist() -> None:
    """Follow the allowlist file, where one is the authority; wake decisions whose pull request is not open yet."""
    if not authority.is_file():
        return
    edits.sweep(now=now())
    sync.sync(now=now())
