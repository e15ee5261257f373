"""Verbs on who speaks for a platform: invite, accept, prove, remove. `add_member` itself stands in services."""

import datetime
import secrets

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import digest_of
from apps.audit.enums import Action
from apps.audit.services import Actor, Subject, record
from apps.core.errors import Problem
from apps.core.github import GitHubRefused, GitHubUnavailable, GitHubUser, RepositoryIdentity
from apps.core.permissions import Permission
from apps.platforms.models import Invitation, Membership, Platform, Repository
from apps.platforms.selectors import may_on_platform, open_invitations
from apps.platforms.services import add_member

INVITATION_DAYS = 7
# More than a team needs at once; a link that nobody uses runs out by itself.
OPEN_INVITATIONS = 20


def _subject(platform: Platform) -> Subject:
    return Subject("platform", platform.slug, platform.name)


@transaction.atomic
def create_invitation(
    *, platform: Platform, note: str, inviter: User, actor: Actor, now: datetime.datetime
) -> tuple[Invitation, str]:
    """Make an invitation to speak for a platform: for one person, for seven days.

    Returns it with its code: the only time the code can be read. Raises Problem `malformed` when too many are open.
    """
    Platform.objects.select_for_update().get(pk=platform.pk)
    if open_invitations(platform, now=now).count() >= OPEN_INVITATIONS:
        raise Problem("malformed", f"{OPEN_INVITATIONS} invitations are open: withdraw one that is not needed.")
    code = secrets.token_urlsafe(24)
    invitation = Invitation.objects.create(
        platform=platform,
        digest=digest_of(code),
        note=note.strip(),
        invited_by=inviter,
        created_at=now,
        expires_at=now + datetime.timedelta(days=INVITATION_DAYS),
    )
    _record(Action.INVITATION_CREATED, invitation, f"Invitation to speak for {platform.name}", actor, now)
    return invitation, code


@transaction.atomic
def withdraw_invitation(*, invitation: Invitation, actor: Actor, now: datetime.datetime) -> bool:
    """Make an invitation worthless. Returns False when it is closed already."""
    if not _close(invitation, now, withdrawn_at=now):
        return False
    name = invitation.platform.name
    _record(Action.INVITATION_WITHDRAWN, invitation, f"Invitation to speak for {name} withdrawn", actor, now)
    return True


@transaction.atomic
def accept_invitation(*, invitation: Invitation, user: User, actor: Actor, now: datetime.datetime) -> None:
    """Use an invitation up: the user speaks for its platform.

    Raises Problem `invitation_closed` when it was used, withdrawn or has run out, or when who made it may no longer
    invite; `malformed` when the user already speaks for the platform; then it stays good for someone else.
    """
    if Membership.objects.filter(platform=invitation.platform, user=user).exists():
        raise Problem("malformed", f"You already speak for {invitation.platform.name}: leave the link to someone else.")
    if not _close(invitation, now, accepted_at=now):
        raise Problem("invitation_closed", "It was used, withdrawn, or is older than seven days.")
    if not may_on_platform(invitation.invited_by, Permission.MEMBERSHIP_CHANGE, invitation.platform):
        raise Problem("invitation_closed", "Who made it may no longer invite. Ask someone else of the platform.")
    is_new = add_member(
        platform=invitation.platform,
        user=user,
        reason=f"invited by {invitation.invited_by.get_username()}",
        evidence={"invitation": str(invitation.public_id)},
        actor=actor,
        now=now,
    )
    if not is_new:  # by another invitation, at this moment: the transaction gives this one back
        raise Problem("malformed", f"You already speak for {invitation.platform.name}: leave the link to someone else.")


def _close(invitation: Invitation, now: datetime.datetime, **end: datetime.datetime) -> bool:
    still_open = Invitation.objects.filter(pk=invitation.pk, accepted_at=None, withdrawn_at=None, expires_at__gt=now)
    return still_open.update(**end) == 1


def _record(action: Action, invitation: Invitation, summary: str, actor: Actor, now: datetime.datetime) -> None:
    record(
        action=action,
        actor=actor,
        subject=_subject(invitation.platform),
        summary=summary,
        evidence={"invitation": str(invitation.public_id)},  # the note may be a person's name: not for good
        now=now,
        is_decision=False,
    )


def join_by_write_access(
    *, repository: Repository, user: User, github: GitHubUser, actor: Actor, now: datetime.datetime
) -> bool:
    """Let a user speak for a platform who may push to its repository, as GitHub tells their own token.

    The repository is the one of the pinned numeric id, whatever bears its name now. Returns False when they already
    speak for it. Raises Problem `write_access` or `github_unavailable`.
    """
    if repository.github_id is None or repository.github_owner_id is None:
        raise Problem(
            "write_access",
            f"{repository.full_name} is not pinned to GitHub's id yet, so nothing can be proven about it.",
        )
    identity = RepositoryIdentity(repository.full_name, repository.github_id, repository.github_owner_id)
    try:
        may_push = github.may_push(identity)
    except GitHubUnavailable as error:
        raise Problem("github_unavailable", f"{error}.") from error
    except GitHubRefused as error:
        raise Problem("write_access", f"{error}: your sign-in with GitHub may be too old, sign in again.") from error
    if not may_push:
        raise Problem(
            "write_access",
            f"GitHub does not say that {user.github_login or user.get_username()} may push to the repository with the "
            f"id {repository.github_id}, which {repository.full_name} was listed as.",
        )
    return add_member(
        platform=repository.platform,
        user=user,
        reason=f"may push to {repository.full_name}",
        evidence={"repository": str(repository.public_id), "github_id": str(repository.github_id)},
        actor=actor,
        now=now,
    )


@transaction.atomic
def remove_member(*, platform: Platform, user: User, actor: Actor, now: datetime.datetime) -> bool:
    """End that a user speaks for a platform; their open invitations to it end too. Returns False when they do not."""
    if not Membership.objects.filter(platform=platform, user=user).delete()[0]:
        return False
    withdrawn = Invitation.objects.filter(platform=platform, invited_by=user, accepted_at=None, withdrawn_at=None)
    name = user.get_username()
    ids = [str(public_id) for public_id in withdrawn.values_list("public_id", flat=True)]
    withdrawn.update(withdrawn_at=now)
    record(
        action=Action.MEMBER_REMOVED,
        actor=actor,
        subject=_subject(platform),
        summary=f"{name} no longer speaks for {platform.name}",
        before={"user": name},
        evidence={"invitations_withdrawn": ids} if ids else {},
        now=now,
        is_decision=False,
    )
    return True
