"""Users, the roles granted to them, and their API tokens."""

from functools import cached_property

from django.contrib.auth.models import AbstractUser
from django.db import models

from apps.accounts.policy import GRANTABLE, Role, permissions_of
from apps.core.ids import public_id
from apps.core.permissions import Permission


class User(AbstractUser):
    """A person who can sign in. Demo accounts exist for the demo and are dead outside it (HubBackend)."""

    public_id = models.UUIDField(default=public_id, unique=True, editable=False)
    is_demo = models.BooleanField(default=False)

    @cached_property
    def roles(self) -> set[Role]:
        return {Role(role) for role in self.role_grants.values_list("role", flat=True)}

    def may(self, permission: Permission) -> bool:
        """Whether a role of this user gives the permission everywhere. One query per request."""
        return self.is_active and permission in permissions_of(self.roles)


class RoleGrant(models.Model):
    """A role given to a user."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="role_grants")
    role = models.CharField(max_length=20, choices=[(role.value, role.label) for role in GRANTABLE])
    granted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "role"], name="accounts_role_grant_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=[role.value for role in GRANTABLE]), name="accounts_role_grantable"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.role}"


class ApiToken(models.Model):
    """A key for the API with its user's rights. Only its digest is kept; the text is shown once."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    digest = models.CharField(max_length=64, unique=True)
    note = models.CharField(max_length=100)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.user}: {self.note}"
