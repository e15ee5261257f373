"""Verbs on a repository's identity: GitHub's numeric ids, pinned, confirmed, corrected, or refused."""

import datetime

from django.db import transaction

from apps.audit.enums import Action
from apps.audit.services import HUB, Actor, record
from apps.core.errors import Problem
from apps.core.github import RepositoryIdentity
from apps.platforms.edits import subject_of
from apps.platforms.models import Repository
from apps.platforms.policy import UNLISTED


@transaction.atomic
def pin_identity(
    *,
    repository_id: int,
    identity: RepositoryIdentity,
    source: Repository.PinSource,
    now: datetime.datetime,
    actor: Actor = HUB,
    replace: bool = False,
) -> bool:
    """Pin a repository to GitHub's numeric ids. Returns whether this call changed anything.

    A pin from a first callback is kept only until GitHub itself can be asked: GitHub's answer then confirms or
    corrects it, and either is on record. A pin that GitHub gave is replaced only with `replace`, which is an operator's
    word. Ids that an unlisted repository holds move to the listed one: it is the same repository under a new name.
    Raises Problem `identity_replaced` when another listed repository holds them.
    """
    repository = Repository.objects.select_for_update().get(pk=repository_id)
    if not replace and (
        repository.pin_source == Repository.PinSource.GITHUB_API
        or (repository.github_id is not None and source is Repository.PinSource.FIRST_SIGHT)
    ):
        return False
    other = (
        Repository.objects.select_for_update().filter(github_id=identity.github_id).exclude(pk=repository_id).first()
    )
    if other is not None:
        if other.level > UNLISTED:
            raise Problem(
                "identity_replaced",
                f"GitHub id {identity.github_id} is pinned to {other.full_name}, which is listed: "
                f"{repository.full_name} is another name of it, list it once.",
            )
        _write_pin(other, None, Repository.PinSource.NONE, now)
    before = _ids_of(repository)
    is_correction = bool(before) and (repository.github_id, repository.github_owner_id) != (
        identity.github_id,
        identity.github_owner_id,
    )
    _write_pin(repository, identity, source, now)
    record(
        action=Action.IDENTITY_REPINNED if is_correction else Action.IDENTITY_PINNED,
        actor=actor,
        subject=subject_of(repository),
        summary=f"{repository.full_name} pinned to GitHub id {identity.github_id}",
        before=before,
        after=_ids_of(repository),
        reason=source.label,
        evidence={"renamed_from": other.full_name} if other else {},
        now=now,
        is_decision=is_correction or other is not None,
    )
    return True


def note_refusal(*, repository_id: int, words: str, now: datetime.datetime) -> None:
    """Keep why a repository is not pinned: what GitHub answered last, and when. Its page says so until it is."""
    Repository.objects.filter(pk=repository_id).update(pin_refusal=words.replace("\0", "")[:300], pin_refused_at=now)


def _write_pin(
    repository: Repository, identity: RepositoryIdentity | None, source: Repository.PinSource, now: datetime.datetime
) -> None:
    repository.github_id = identity.github_id if identity else None
    repository.github_owner_id = identity.github_owner_id if identity else None
    repository.pin_source = source
    repository.pinned_at = now if identity else None
    repository.save(update_fields=["github_id", "github_owner_id", "pin_source", "pinned_at"])


def _ids_of(repository: Repository) -> dict[str, str]:
    ids = {"github_id": repository.github_id, "github_owner_id": repository.github_owner_id}
    return {key: str(value) for key, value in ids.items() if value is not None}
