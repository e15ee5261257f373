"""Verbs on users: their accounts, roles, organisations, sessions and tokens."""

import datetime
import hashlib
import secrets

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.utils.text import slugify
from social_django.models import UserSocialAuth

from apps.accounts.models import ApiToken, Organisation, RoleGrant, User, UserSession
from apps.accounts.policy import Role
from apps.audit import services as audit_services
from apps.audit.enums import Action, ActorKind
from apps.audit.services import HUB, Actor, Subject
from apps.core.errors import Problem
from apps.core.github import UserIdentity

TOKEN_PREFIX = "ahub_"  # noqa: S105  lets secret scanners recognise a leaked one
REASON_MAX = 2_000
GITHUB = "github"


def actor_of(user: User | AnonymousUser) -> Actor:
    """The signed-in user as the log names them. Raises TypeError for a visitor: no route may let one act."""
    if not isinstance(user, User):
        raise TypeError("a visitor acts on nothing")
    return Actor(ActorKind.USER, str(user.public_id), user.get_username())


def subject_of(user: User) -> Subject:
    return Subject("user", str(user.public_id), user.get_username())


# --- accounts ---------------------------------------------------------------------------------------------------


def account_of_github(*, identity: UserIdentity, email: str = "", now: datetime.datetime) -> User:
    """The account of a GitHub user, by GitHub's numeric id; made at first sight, its login brought up to date.

    No other account is ever taken: not by an equal name, not by an equal address. In demo mode it is a demo account.
    """
    with transaction.atomic():
        user = _account_by_id(identity)
        if user is None:
            # One new account at a time: the same person in two windows, or two with one login, would otherwise wait
            # for each other's names.
            _lock_new_accounts()
            user = _account_by_id(identity)
        if user is None:
            return _make_account(identity, email=email, now=now)
        _follow_github(user, identity, email=email)
    return user


def _lock_new_accounts() -> None:
    """Until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('accounts: new account'))")


def _account_by_id(identity: UserIdentity) -> User | None:
    link = UserSocialAuth.objects.select_related("user").filter(provider=GITHUB, uid=str(identity.github_id)).first()
    return link.user if link else None


def _make_account(identity: UserIdentity, *, email: str, now: datetime.datetime) -> User:
    _free_login(identity.login, keeper=None)
    user = User(
        username=_free_username(identity.login, keeper=None),
        github_login=identity.login,
        email=email,
        is_demo=settings.DEMO,
        date_joined=now,
    )
    user.set_unusable_password()
    user.save()
    UserSocialAuth.objects.create(user=user, provider=GITHUB, uid=str(identity.github_id), id_key="id")
    return user


def _follow_github(user: User, identity: UserIdentity, *, email: str) -> None:
    if user.github_login != identity.login:
        _free_login(identity.login, keeper=user)
        if user.username == user.github_login or not user.github_login:
            user.username = _free_username(identity.login, keeper=user)
        user.github_login = identity.login
    user.email = email or user.email
    user.save(update_fields=["username", "github_login", "email"])


def _free_login(login: str, *, keeper: User | None) -> None:
    """GitHub gives a login to one account at a time: whoever is still noted with it here has lost it."""
    holders = User.objects.filter(github_login__iexact=login)
    (holders.exclude(pk=keeper.pk) if keeper else holders).update(github_login="")


def _free_username(login: str, *, keeper: User | None) -> str:
    others = User.objects.exclude(pk=keeper.pk) if keeper else User.objects.all()
    taken = {name.lower() for name in others.filter(username__istartswith=login).values_list("username", flat=True)}
    candidates = (login if n == 1 else f"{login}-{n}" for n in range(1, len(taken) + 2))
    return next(name for name in candidates if name.lower() not in taken)


# --- roles ------------------------------------------------------------------------------------------------------


@transaction.atomic
def grant_role(
    *,
    user: User,
    role: Role,
    actor: Actor,
    now: datetime.datetime,
    reason: str = "",
    source: RoleGrant.Source = RoleGrant.Source.HAND,
) -> bool:
    """Give a user a role. Returns False, and writes nothing, when they already have it from this source."""
    _, is_new = RoleGrant.objects.get_or_create(user=user, role=role, source=source, defaults={"granted_at": now})
    if is_new:
        _forget_roles(user)
        audit_services.record(
            action=Action.ROLE_GRANTED,
            actor=actor,
            subject=subject_of(user),
            summary=f"{user.get_username()} became {role.label.lower()}",
            after={"role": role.value},
            reason=_checked(reason, is_required=False),
            now=now,
            is_decision=False,
        )
    return is_new


@transaction.atomic
def remove_role(
    *,
    user: User,
    role: Role,
    reason: str,
    actor: Actor,
    now: datetime.datetime,
    source: RoleGrant.Source | None = None,
) -> bool:
    """Take a role from a user: from every source, or the given one. Returns False when they do not have it.

    Raises Problem `malformed` without a reason, `last_admin` when nobody would be left to grant roles.
    """
    reason = _checked(reason)
    grants = RoleGrant.objects.filter(user=user, role=role)
    if source is not None:
        grants = grants.filter(source=source)
    if role is Role.ADMIN:
        _keep_an_admin(user)
    sources = sorted(grants.values_list("source", flat=True))
    if not grants.delete()[0]:
        return False
    _forget_roles(user)
    audit_services.record(
        action=Action.ROLE_REMOVED,
        actor=actor,
        subject=subject_of(user),
        summary=f"{user.get_username()} is no longer {role.label.lower()}"
        if not RoleGrant.objects.filter(user=user, role=role).exists()
        else f"{user.get_username()} is {role.label.lower()} by hand only",
        before={"role": role.value},
        reason=reason,
        evidence={"sources": sources},
        now=now,
        is_decision=False,
    )
    return True


def _keep_an_admin(user: User) -> None:
    # Locked, so that two admins do not remove each other at once.
    admins = RoleGrant.objects.select_for_update().filter(role=Role.ADMIN, user__is_active=True).order_by("pk")
    if set(admins.values_list("user_id", flat=True)) == {user.pk}:
        raise Problem("last_admin", f"{user.get_username()} is the only admin.")


@transaction.atomic
def switch_account(*, user: User, is_active: bool, reason: str, actor: Actor, now: datetime.datetime) -> bool:
    """Switch an account off, or on again. Returns False when it is so already.

    Off, it ends every session, and neither sign-in nor API token opens anything; what it has stays. Raises Problem
    `malformed` without a reason, `last_admin` when nobody would be left to switch it on.
    """
    reason = _checked(reason)
    if not is_active:
        _keep_an_admin(user)
    changed = User.objects.filter(pk=user.pk, is_active=not is_active)
    if not changed.update(is_active=is_active, session_epoch=F("session_epoch") + 1):
        return False
    UserSession.objects.filter(user=user).delete()
    audit_services.record(
        action=Action.SWITCHED_ON if is_active else Action.SWITCHED_OFF,
        actor=actor,
        subject=subject_of(user),
        summary=f"Account {user.get_username()} switched {'on' if is_active else 'off'}",
        reason=reason,
        now=now,
        is_decision=False,
    )
    return True


def sync_team_role(*, user: User, team: str, is_member: bool | None, now: datetime.datetime) -> None:
    """Let the maintainer's role that comes from the GitHub team follow the team. A role given by hand stays as it is.

    `is_member` None: GitHub could not be asked, and nothing changes.
    """
    if is_member:
        grant_role(
            user=user,
            role=Role.MAINTAINER,
            source=RoleGrant.Source.TEAM,
            reason=f"in the GitHub team {team}",
            actor=HUB,
            now=now,
        )
    elif is_member is not None:
        remove_role(
            user=user,
            role=Role.MAINTAINER,
            source=RoleGrant.Source.TEAM,
            reason=f"not in the GitHub team {team}" if team else "no GitHub team has maintainers",
            actor=HUB,
            now=now,
        )


def _forget_roles(user: User) -> None:
    user.__dict__.pop("roles", None)  # cached_property


def _checked(reason: str, *, is_required: bool = True) -> str:
    reason = reason.strip()
    if is_required and not reason:
        raise Problem("malformed", "reason: say why, it becomes part of the log.", "reason")
    if len(reason) > REASON_MAX:
        raise Problem("malformed", f"reason: {len(reason)} characters, at most {REASON_MAX}.", "reason")
    return reason


# --- organisations ----------------------------------------------------------------------------------------------


@transaction.atomic
def create_organisation(*, name: str, slug: str, actor: Actor, now: datetime.datetime) -> Organisation:
    """Make an organisation. Raises Problem `malformed` when the name is empty or the slug is taken or unusable."""
    name = name.strip()
    if not name:
        raise Problem("malformed", "name: needs at least one character.", "name")
    if not slug or slug != slugify(slug):
        raise Problem("malformed", f"slug: {slug!r} cannot stand in an address, use lower-case letters and -.", "slug")
    try:
        with transaction.atomic():
            organisation = Organisation.objects.create(name=name, slug=slug, created_at=now)
    except IntegrityError:
        raise Problem("malformed", f"slug: {slug!r} is taken, choose another.", "slug") from None
    audit_services.record(
        action=Action.ORGANISATION_CREATED,
        actor=actor,
        subject=Subject("organisation", slug, name),
        summary=f"{name} became an organisation",
        after={"slug": slug, "name": name},
        now=now,
        is_decision=False,
    )
    return organisation


@transaction.atomic
def set_organisation(
    *, user: User, organisation: Organisation | None, reason: str, actor: Actor, now: datetime.datetime
) -> bool:
    """Say whom a user works for; None: for nobody the hub knows. Returns False when that is so already.

    Raises Problem `malformed` without a reason.
    """
    reason = _checked(reason)
    locked = User.objects.select_for_update(of=("self",)).select_related("organisation").get(pk=user.pk)
    before = locked.organisation
    if before == organisation:
        return False
    User.objects.filter(pk=user.pk).update(organisation=organisation)
    user.organisation = organisation
    name = user.get_username()
    audit_services.record(
        action=Action.ORGANISATION_SET,
        actor=actor,
        subject=subject_of(user),
        summary=f"{name} belongs to {organisation.name}" if organisation else f"{name} belongs to no organisation",
        before={"organisation": before.slug} if before else {},
        after={"organisation": organisation.slug} if organisation else {},
        reason=reason,
        now=now,
        is_decision=False,
    )
    return True


# --- sessions and tokens ----------------------------------------------------------------------------------------


@transaction.atomic
def sign_out_everywhere(*, user: User, actor: Actor, now: datetime.datetime) -> int:
    """End every session of a user. Returns how many. API tokens stay: they are revoked one by one.

    The epoch ends them all at once, also one that a request is about to write back; the rows go with it.
    """
    User.objects.filter(pk=user.pk).update(session_epoch=F("session_epoch") + 1)
    live = UserSession.objects.filter(user=user, expire_date__gt=now).count()
    UserSession.objects.filter(user=user).delete()
    audit_services.record(
        action=Action.SIGNED_OUT_EVERYWHERE,
        actor=actor,
        subject=subject_of(user),
        summary=f"{user.get_username()} signed out everywhere",
        evidence={"sessions": live},
        now=now,
        is_decision=False,
    )
    return live


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


@transaction.atomic
def revoke_api_token(*, token: ApiToken, actor: Actor, now: datetime.datetime) -> bool:
    """Make an API token worthless. Returns False when it is gone already."""
    if not ApiToken.objects.filter(pk=token.pk).delete()[0]:
        return False
    audit_services.record(
        action=Action.TOKEN_REVOKED,
        actor=actor,
        subject=subject_of(token.user),
        summary=f"API token of {token.user.get_username()} revoked",
        before={"note": token.note},
        now=now,
        is_decision=False,
    )
    return True


def digest_of(text: str) -> str:
    """SHA-256, hex: the text has 256 bits of its own, so no salt or stretching is needed."""
    return hashlib.sha256(text.encode()).hexdigest()
