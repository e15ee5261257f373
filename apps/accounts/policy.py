"""Who may do what: the one table of roles. /policy/ prints it."""

from dataclasses import dataclass

from django.db import models

from apps.core.permissions import Permission


class Role(models.TextChoices):
    VISITOR = "visitor", "Visitor"
    VENDOR_MEMBER = "vendor_member", "Vendor member"
    MAINTAINER = "maintainer", "Maintainer"
    OPERATOR = "operator", "Operator"
    ADMIN = "admin", "Admin"


@dataclass(frozen=True)
class RoleRow:
    """`permissions` hold everywhere; `own_platforms` only on platforms the user is a member of."""

    held_by: str
    permissions: frozenset[Permission] = frozenset()
    own_platforms: frozenset[Permission] = frozenset()

    @property
    def printed(self) -> tuple[list[Permission], list[Permission]]:
        """Both sets in one order, for pages."""
        return sorted(self.permissions), sorted(self.own_platforms)


_OPERATOR = frozenset(
    {
        Permission.REJECTION_VIEW,
        Permission.COMPONENT_VIEW,
        Permission.ADMIN_VIEW,
        Permission.DISPATCH_VIEW,
        Permission.DISPATCH_RESEND,
        Permission.CHECK_RESEND,
        Permission.RELAY_VIEW,
        Permission.REPORT_REMOVE,
        Permission.HEALTH_VIEW,
        Permission.ALLOWLIST_VIEW,
        Permission.PIPELINE_CHANGE,
        Permission.TRANSFER_DECIDE,
    }
)
_MAINTAINER = frozenset(
    {
        Permission.LEVEL_CHANGE,
        Permission.PLATFORM_RENAME,
        Permission.CALENDAR_DECLARE,
        Permission.MEMBERSHIP_CHANGE,
        Permission.PARTICIPATION_CHANGE,
        Permission.LIMIT_CHANGE,
        Permission.OUTCOME_DECLARE,
        Permission.REPORT_VIEW_PRIVATE,
        Permission.REPORT_REMOVE,
        Permission.HEALTH_VIEW,
        Permission.PROPOSAL_DECIDE,
        Permission.ALLOWLIST_VIEW,
        Permission.COMPONENT_VIEW,
        Permission.TRANSFER_DECIDE,
        Permission.QUARANTINE_CHANGE,
        Permission.QUARANTINE_DECIDE,
        Permission.RULES_CHANGE,
        Permission.POLICY_CHANGE,
        Permission.PROMOTION_OPEN,
        Permission.PROMOTION_DECIDE,
        Permission.WAIVER_GRANT,
        Permission.APPEAL_DECIDE,
        Permission.OVERRIDE_GRANT,
        Permission.BREAKER_CLOSE,
    }
)

ROLES: dict[Role, RoleRow] = {
    Role.VISITOR: RoleRow("anyone, signed in or not"),
    Role.VENDOR_MEMBER: RoleRow(
        "members of a platform",
        own_platforms=frozenset(
            {
                Permission.CALLBACK_VIEW_PRIVATE,
                Permission.REJECTION_VIEW,
                Permission.MEMBERSHIP_CHANGE,
                Permission.PARTICIPATION_CHANGE,
                Permission.CALENDAR_DECLARE,
                Permission.NOTICE_ANSWER,
                Permission.LIMIT_CHANGE,
                Permission.JOB_ACKNOWLEDGE,
                Permission.REPORT_VIEW_PRIVATE,
                Permission.QUARANTINE_CHANGE,
                Permission.PROMOTION_OPEN,
                Permission.APPEAL_OPEN,
            }
        ),
    ),
    Role.MAINTAINER: RoleRow("upstream maintainers, by grant or by their GitHub team", _MAINTAINER),
    Role.OPERATOR: RoleRow("those who run the hub, by grant", _OPERATOR),
    Role.ADMIN: RoleRow("those who grant roles, by grant", _MAINTAINER | _OPERATOR | {Permission.USER_CHANGE}),
}

# Visitors need no grant, members are members of something; the rest is granted.
GRANTABLE = (Role.MAINTAINER, Role.OPERATOR, Role.ADMIN)


def permissions_of(roles: set[Role]) -> frozenset[Permission]:
    """What these roles allow everywhere."""
    return frozenset().union(*(ROLES[role].permissions for role in roles))


def allows_on_own_platform(permission: Permission) -> bool:
    """Whether membership of a platform gives this permission on it."""
    return permission in ROLES[Role.VENDOR_MEMBER].own_platforms
