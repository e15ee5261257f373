"""Background tasks of platforms."""

import logging

from celery import shared_task

from apps.core import rounds
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.github import GitHubRefused, GitHubUnavailable, client
from apps.platforms import authority, edits, sync
from apps.platforms.models import NameChange, Repository
from apps.platforms.pins import note_refusal, pin_identity
from apps.platforms.policy import UNLISTED
from apps.platforms.renames import compare_with_github
from apps.platforms.renames import confirm_name as confirm

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
        rounds.off()
        return
    edits.sweep(now=now())
    sync.sync(now=now())


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


@shared_task
def check_name(repository_id: int) -> None:
    """Ask GitHub what a pinned repository is called and whose it is: a dispatch to a former name reaches nobody, so
    nothing may ever be heard under the new one."""
    repository = Repository.objects.get(pk=repository_id)
    try:
        found = client().repository_identity(repository.full_name)
        compare_with_github(repository=repository, found=found, now=now())
    except (GitHubRefused, GitHubUnavailable) as error:
        log.warning("%s: its name was not checked: %s", repository.full_name, error)
    except Problem as problem:
        log.error("%s: %s", repository.full_name, problem.detail)


@shared_task
def check_names() -> int:
    """Check every listed repository that is pinned. Returns how many are asked about."""
    keys = list(Repository.objects.filter(level__gt=UNLISTED, github_id__isnull=False).values_list("pk", flat=True))
    for key in keys:
        check_name.delay(key)
    return len(keys)
