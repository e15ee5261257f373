"""Users, their organisations, the roles granted to them, their sessions and API tokens."""

from functools import cached_property

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.functions import RandomUUID
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.db.models.functions import Lower
from django.utils.crypto import salted_hmac

from apps.accounts.policy import GRANTABLE, Role, permissions_of
from apps.core.ids import public_id
from apps.core.permissions import Permission


class Organisation(models.Model):
    """Whom people work for. It matters where someone must not decide about their own."""

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=100)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [models.CheckConstraint(condition=~models.Q(name=""), name="accounts_organisation_named")]

    def __str__(self) -> str:
        return self.name


class User(AbstractUser):
    """A person who can sign in. Demo accounts exist for the demo and are dead outside it (HubBackend).

    Who comes through GitHub is known by GitHub's numeric id (`social_auth`, unique there). `github_login` is the name
    that GitHub gave last, for people to read. A session is good while `session_epoch` is the one it began with.
    """

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    is_demo = models.BooleanField(default=False)
    github_login = models.CharField(max_length=100, blank=True)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.PROTECT, null=True, blank=True, related_name="people"
    )
    session_epoch = models.IntegerField(default=0)

    class Meta(AbstractUser.Meta):
        constraints = [
            models.UniqueConstraint(
                Lower("github_login"), condition=~models.Q(github_login=""), name="accounts_user_github_login_once"
            ),
        ]

    @cached_property
    def roles(self) -> set[Role]:
        return {Role(role) for role in self.role_grants.values_list("role", flat=True)}

    def may(self, permission: Permission) -> bool:
        """Whether a role of this user gives the permission everywhere. One query per request."""
        return self.is_active and permission in permissions_of(self.roles)

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        # Django's own covers the password alone, which whoever comes through GitHub has none of.
        text = f"{self.password}:{self.session_epoch}"
        return salted_hmac("apps.accounts.User.session", text, secret=secret, algorithm="sha256").hexdigest()


class RoleGrant(models.Model):
    """A role given to a user, by hand or because a GitHub team has them. Both may stand side by side."""

    class Source(models.TextChoices):
        HAND = "hand", "by hand"
        TEAM = "team", "by the GitHub team"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="role_grants")
    role = models.CharField(max_length=20, choices=[(role.value, role.label) for role in GRANTABLE])
    source = models.CharField(max_length=20, choices=Source.choices, default=Source.HAND)
    granted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "role", "source"], name="accounts_role_grant_once"),
            models.CheckConstraint(
                condition=models.Q(source="hand") | models.Q(source="team", role="maintainer"),
                name="accounts_role_grant_source",
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=[role.value for role in GRANTABLE]), name="accounts_role_grantable"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.role}, {self.get_source_display()}"


class ApiToken(models.Model):
    """A key for the API with its user's rights. Only its digest is kept; the text is shown once."""

    # The database's default serves the rows from before there was this column: each gets its own.
    public_id = models.UUIDField(default=public_id, db_default=RandomUUID(), unique=True, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    digest = models.CharField(max_length=64, unique=True)
    note = models.CharField(max_length=100)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.user}: {self.note}"


class UserSession(AbstractBaseSession):
    """A browser's session, with whose it is: so that a user's sessions can be counted and ended."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True, related_name="sessions")

    @classmethod
    def get_session_store_class(cls) -> type:
        from apps.accounts.sessions import SessionStore

        return SessionStore

    def __str__(self) -> str:
        # Never the key: whoever reads it has the session.
        return f"session of {self.user}"
