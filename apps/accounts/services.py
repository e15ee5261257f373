"""Verbs on users: grants and tokens."""

import datetime
import hashlib
import secrets

from django.contrib.auth.models import AnonymousUser
from django.db import transaction

from apps.accounts.models import ApiToken, RoleGrant, User
from apps.accounts.policy import Role
from apps.audit import services as audit_services
from apps.audit.enums import Action, ActorKind
from apps.audit.services import Actor, Subject

TOKEN_PREFIX = "ahub_"  # noqa: S105  lets secret scanners recognise a leaked one


def actor_of(user: User | AnonymousUser) -> Actor:
    """The signed-in user as the log names them. Raises TypeError for a visitor: no route may let one act."""
    if not isinstance(user, User):
        raise TypeError("a visitor acts on nothing")
    return Actor(ActorKind.USER, str(user.public_id), user.get_username())


def subject_of(user: User) -> Subject:
    return Subject("user", str(user.public_id), user.get_username())


@transaction.atomic
def grant_role(*, user: User, role: Role, actor: Actor, now: datetime.datetime) -> bool:
    """Give a user a role. Returns False, and writes nothing, when they already have it."""
    _, is_new = RoleGrant.objects.get_or_create(user=user, role=role, defaults={"granted_at": now})
    if is_new:
        audit_services.record(
            action=Action.ROLE_GRANTED,
            actor=actor,
            subject=subject_of(user),
            summary=f"{user.get_username()} became {role.label.lower()}",
            after={"role": role.value},
            now=now,
            is_decision=False,
        )
    return is_new


@transaction.atomic
def create_api_token(*, user: User, note: str, actor: Actor, now: datetime.datetime) -> str:
    """Make an API token. Returns its text: the only time it can be read."""
    text = TOKEN_PREFIX + secrets.token_urlsafe(32)
    ApiToken.objects.create(user=user, digest=digest_of(text), note=note, created_at=now)
    audit_services.record(
        action=Action.TOKEN_CREATED,
        actor=actor,
        subject=subject_of(user),
        summary=f"API token made for {user.get_username()}",
        after={"note": note},
        now=now,
        is_decision=False,
    )
    return text


def digest_of(text: str) -> str:
    """SHA-256, hex: the text has 256 bits of its own, so no salt or stretching is needed."""
    return hashlib.sha256(text.encode()).hexdigest()
