"""A repository under another name, or under another owner. Its numeric id says that it is the same one."""

import datetime
import uuid
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Prefetch, QuerySet
from django.http import Http404

from apps.audit.enums import Action
from apps.audit.models import Event
from apps.audit.services import HUB, Actor, record
from apps.core import alarms
from apps.core.errors import Problem
from apps.core.github import RepositoryIdentity
from apps.core.models import Alarm
from apps.core.wakeups import wake
from apps.platforms.edits import subject_of
from apps.platforms.models import NameChange, Repository, Transfer
from apps.platforms.services import REASON_MAX
from apps.platforms.topics import REPOSITORY_RENAMED


@transaction.atomic
def note_name(*, repository_id: int, old_name: str, new_name: str, now: datetime.datetime) -> NameChange:
    """Remember that a pinned repository spoke under another name, and have GitHub asked whether it is called so.

    Seen again before GitHub answered: changes nothing. Returns what is remembered.
    """
    change, is_new = NameChange.objects.get_or_create(
        repository_id=repository_id,
        new_name__iexact=new_name,
        confirmed_at=None,
        defaults={"old_name": old_name, "new_name": new_name, "seen_at": now},
    )
    if is_new:
        wake(REPOSITORY_RENAMED, [str(change.pk)], now=now)
    return change


def compare_with_github(*, repository: Repository, found: RepositoryIdentity, now: datetime.datetime) -> None:
    """What GitHub says about a listed, pinned repository's name, whether or not anything was heard of it: another name
    is taken over, another owner opens the question, another repository under the name is an alarm.

    Raises Problem `already_listed` as `confirm_name` does.
    """
    if found.github_id != repository.github_id:
        detail = f"{repository.full_name} was listed as id {repository.github_id}; GitHub says {found.github_id} now."
        alarms.sound(Alarm.Kind.IDENTITY_REPLACED, str(repository.pk), detail=detail, now=now)
    elif found.github_owner_id != repository.github_owner_id:
        hold(
            repository_id=repository.pk,
            old_owner_id=repository.github_owner_id or 0,
            new_owner_id=found.github_owner_id,
            new_name=found.full_name,
            now=now,
        )
    elif found.full_name.lower() != repository.full_name.lower():
        name = repository.full_name
        change = note_name(repository_id=repository.pk, old_name=name, new_name=found.full_name, now=now)
        confirm_name(change=change, found=found, now=now)


@transaction.atomic
def confirm_name(*, change: NameChange, found: RepositoryIdentity, now: datetime.datetime) -> bool:
    """Call a repository what GitHub says. `found` is GitHub's answer about the new name. Returns whether the name
    changed: not when it belongs to another repository, or nothing is left to do.

    The old name stays an alias: an allowlist that still has it means this repository. Raises Problem `already_listed`
    when another repository of the hub bears the new name.
    """
    repository = Repository.objects.select_for_update().get(pk=change.repository_id)
    if found.github_id != repository.github_id or found.full_name == repository.full_name:
        NameChange.objects.filter(pk=change.pk, confirmed_at=None).delete()
        return False
    old_name = repository.full_name
    try:
        with transaction.atomic():
            Repository.objects.filter(pk=repository.pk).update(full_name=found.full_name)
    except IntegrityError:
        raise Problem(
            "already_listed",
            f"{old_name} is called {found.full_name} now, and another repository bears that name here: take one of "
            "them off the allowlist.",
        ) from None
    repository.full_name = found.full_name
    NameChange.objects.filter(pk=change.pk).update(old_name=old_name, new_name=found.full_name, confirmed_at=now)
    record(
        action=Action.REPOSITORY_RENAMED,
        actor=HUB,
        subject=subject_of(repository),
        summary=f"{old_name} is called {found.full_name} on GitHub, with the same id {found.github_id}",
        before={"full_name": old_name},
        after={"full_name": found.full_name},
        reason="asked GitHub",
        now=now,
    )
    return True


def with_renames(repositories: QuerySet[Repository]) -> QuerySet[Repository]:
    """Each with `former_names` (confirmed changes of its name) and `open_transfers`, newest first."""
    confirmed = NameChange.objects.exclude(confirmed_at=None).order_by("-confirmed_at", "-pk")
    waiting = Transfer.objects.filter(state=Transfer.State.OPEN)
    return repositories.prefetch_related(
        Prefetch("name_changes", queryset=confirmed, to_attr="former_names"),
        Prefetch("transfers", queryset=waiting, to_attr="open_transfers"),
    )


@transaction.atomic
def hold(
    *, repository_id: int, old_owner_id: int, new_owner_id: int, new_name: str, now: datetime.datetime
) -> Transfer.State:
    """What was decided about a repository that speaks under another owner; the first time, open the question.

    ACCEPTED where that was decided after the caller had read who the owner is.
    """
    known = Transfer.objects.filter(repository_id=repository_id, new_owner_id=new_owner_id).exclude(
        state=Transfer.State.ACCEPTED
    )
    if (transfer := known.first()) is not None:
        return Transfer.State(transfer.state)
    # Two first callbacks at once are put in order by their repository's row.
    repository = Repository.objects.select_for_update().get(pk=repository_id)
    if repository.github_owner_id == new_owner_id:
        return Transfer.State.ACCEPTED
    if (transfer := known.first()) is not None:
        return Transfer.State(transfer.state)
    Transfer.objects.create(
        repository=repository,
        old_owner_id=old_owner_id,
        new_owner_id=new_owner_id,
        new_name=new_name,
        opened_at=now,
    )
    record(
        action=Action.TRANSFER_HELD,
        actor=HUB,
        subject=subject_of(repository),
        summary=f"{repository.full_name} spoke as {new_name}, under another owner: held until somebody decides",
        before={"github_owner_id": str(old_owner_id)},
        after={"github_owner_id": str(new_owner_id), "full_name": new_name},
        now=now,
        is_decision=False,
    )
    return Transfer.State.OPEN


def settle(
    *,
    transfer: Transfer,
    is_accepted: bool,
    reason: str,
    evidence: dict[str, Any],
    actor: Actor,
    now: datetime.datetime,
) -> Event:
    """Decide about a new owner, in the caller's transaction. Accepted: the new owner is the pinned one. Returns the
    decision.

    Raises Problem: `malformed` (no reason), `transfer_stale` (somebody has decided meanwhile).
    """
    reason = reason.strip()
    if not 0 < len(reason) <= REASON_MAX:
        words = f"say why in at most {REASON_MAX} characters, it becomes part of the public log."
        raise Problem("malformed", f"reason: {words}", "reason")
    state = Transfer.State.ACCEPTED if is_accepted else Transfer.State.REFUSED
    before = [Transfer.State.OPEN] if state is Transfer.State.REFUSED else [Transfer.State.OPEN, Transfer.State.REFUSED]
    repository = Repository.objects.select_for_update().get(pk=transfer.repository_id)
    if Transfer.objects.filter(pk=transfer.pk, state__in=before).update(state=state, decided_at=now) != 1:
        raise Problem("transfer_stale", f"Somebody has decided about {transfer.new_name} meanwhile.")
    if is_accepted:
        Repository.objects.filter(pk=repository.pk).update(github_owner_id=transfer.new_owner_id)
        if transfer.new_name.lower() != repository.full_name.lower():
            note_name(repository_id=repository.pk, old_name=repository.full_name, new_name=transfer.new_name, now=now)
    return record(
        action=Action.TRANSFER_ACCEPTED if is_accepted else Action.TRANSFER_REFUSED,
        actor=actor,
        subject=subject_of(repository),
        summary=f"The new owner of {repository.full_name}, now {transfer.new_name}, is {state.label}",
        before={"github_owner_id": str(repository.github_owner_id)},
        after={"github_owner_id": str(transfer.new_owner_id)} if is_accepted else {},
        reason=reason,
        evidence=evidence,
        now=now,
    )


def transfers() -> QuerySet[Transfer]:
    """Every change of owner, newest first."""
    return Transfer.objects.select_related("repository__platform").order_by("-opened_at", "-pk")


def transfers_waiting() -> QuerySet[Transfer]:
    """Those that wait for a decision, longest waiting first."""
    return transfers().filter(state=Transfer.State.OPEN).order_by("opened_at", "pk")


def transfer_or_404(public_id: uuid.UUID) -> Transfer:
    """A change of owner by its public id."""
    try:
        return transfers().get(public_id=public_id)
    except Transfer.DoesNotExist:
        raise Http404 from None
