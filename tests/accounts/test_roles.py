"""The table of roles, and what it lets a user do."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction

from apps.accounts.models import RoleGrant
from apps.accounts.policy import GRANTABLE, ROLES, Role, allows_on_own_platform
from apps.core.access import is_allowed
from apps.core.clock import now
from apps.core.permissions import Access, Open, Permission
from tests.factories.listing import user

LEVEL, RENAME = Permission.LEVEL_CHANGE, Permission.PLATFORM_RENAME
PRIVATE, REJECTION = Permission.CALLBACK_VIEW_PRIVATE, Permission.REJECTION_VIEW
COMPONENT, PROPOSAL = Permission.COMPONENT_VIEW, Permission.PROPOSAL_DECIDE
PARTICIPATION, OUTBOX = Permission.PARTICIPATION_CHANGE, {Permission.DISPATCH_VIEW, Permission.DISPATCH_RESEND}
LIMIT, HEALTH, LIST = Permission.LIMIT_CHANGE, Permission.HEALTH_VIEW, Permission.ALLOWLIST_VIEW
CHECK, RELAY = Permission.CHECK_RESEND, Permission.RELAY_VIEW
QUARANTINE, OPENS, APPEALS = Permission.QUARANTINE_CHANGE, Permission.PROMOTION_OPEN, Permission.APPEAL_OPEN
RULES = {Permission.QUARANTINE_DECIDE, Permission.RULES_CHANGE, Permission.POLICY_CHANGE, Permission.WAIVER_GRANT}
RULES |= {Permission.OVERRIDE_GRANT, Permission.BREAKER_CLOSE, Permission.PROMOTION_OPEN, Permission.PROMOTION_DECIDE}
RULES |= {Permission.APPEAL_DECIDE}
PIPELINE, TRANSFER = Permission.PIPELINE_CHANGE, Permission.TRANSFER_DECIDE
ANSWER = Permission.NOTICE_ANSWER
DECLARE, CALENDAR = Permission.OUTCOME_DECLARE, Permission.CALENDAR_DECLARE
ACKNOWLEDGE = Permission.JOB_ACKNOWLEDGE
REPORT, TAKE_DOWN = Permission.REPORT_VIEW_PRIVATE, Permission.REPORT_REMOVE
MEMBERSHIP, USER, TABLES = Permission.MEMBERSHIP_CHANGE, Permission.USER_CHANGE, Permission.ADMIN_VIEW


def test_each_role_has_exactly_these_permissions() -> None:
    assert {role: (set(row.permissions), set(row.own_platforms)) for role, row in ROLES.items()} == {
        Role.VISITOR: (set(), set()),
        Role.VENDOR_MEMBER: (
            set(),
            {PRIVATE, REJECTION, MEMBERSHIP, PARTICIPATION, CALENDAR, ANSWER, LIMIT, ACKNOWLEDGE, REPORT, QUARANTINE}
            | {OPENS, APPEALS},
        ),
        Role.MAINTAINER: (
            {LEVEL, RENAME, MEMBERSHIP, PARTICIPATION, LIMIT, HEALTH, LIST, PROPOSAL, COMPONENT, TRANSFER}
            | {REPORT, TAKE_DOWN, DECLARE, CALENDAR, QUARANTINE, *RULES},
            set(),
        ),
        Role.OPERATOR: (
            {REJECTION, RELAY, COMPONENT, TABLES, HEALTH, LIST, CHECK, PIPELINE, TRANSFER, TAKE_DOWN, *OUTBOX},
            set(),
        ),
        Role.ADMIN: (
            {LEVEL, RENAME, MEMBERSHIP, PARTICIPATION, LIMIT, PROPOSAL, REJECTION, COMPONENT, TABLES, HEALTH, USER}
            | {
                LIST,
                CHECK,
                RELAY,
                PIPELINE,
                TRANSFER,
                REPORT,
                TAKE_DOWN,
                DECLARE,
                CALENDAR,
                QUARANTINE,
                *RULES,
                *OUTBOX,
            },
            set(),
        ),
    }


def test_every_permission_belongs_to_some_role() -> None:
    held = {permission for row in ROLES.values() for permission in row.permissions | row.own_platforms}
    assert held == set(Permission)


def test_maintainer_operator_and_admin_are_granted() -> None:
    assert GRANTABLE == (Role.MAINTAINER, Role.OPERATOR, Role.ADMIN)


@pytest.mark.parametrize("permission", list(Permission))
def test_membership_gives_what_the_vendor_members_row_says(permission: Permission) -> None:
    own = {
        PRIVATE,
        REJECTION,
        MEMBERSHIP,
        PARTICIPATION,
        CALENDAR,
        ANSWER,
        LIMIT,
        ACKNOWLEDGE,
        REPORT,
        QUARANTINE,
        OPENS,
        APPEALS,
    }
    assert allows_on_own_platform(permission) is (permission in own)


@pytest.mark.django_db
@pytest.mark.parametrize("role", GRANTABLE)
def test_a_granted_role_allows_its_permissions_everywhere(role: Role) -> None:
    granted = user(role)
    assert {permission for permission in Permission if granted.may(permission)} == ROLES[role].permissions


@pytest.mark.django_db
def test_an_inactive_user_may_nothing() -> None:
    inactive = user(Role.ADMIN, is_active=False)
    assert {permission for permission in Permission if inactive.may(permission)} == set()


@pytest.mark.django_db
@pytest.mark.parametrize("role", [Role.VISITOR, Role.VENDOR_MEMBER])
def test_postgresql_refuses_a_grant_of_a_role_that_is_not_granted(role: Role) -> None:
    someone = user()
    with pytest.raises(IntegrityError, match="accounts_role_grantable"), transaction.atomic():
        RoleGrant.objects.create(user=someone, role=role, granted_at=now())


@pytest.mark.django_db
def test_a_declared_access_lets_exactly_these_in() -> None:
    people = {"visitor": AnonymousUser(), "signed in": user(), "maintainer": user(Role.MAINTAINER)}
    declared: list[Access] = [*Open, LEVEL, REJECTION]
    assert {access: {name for name, person in people.items() if is_allowed(person, access)} for access in declared} == {
        Open.PUBLIC: {"visitor", "signed in", "maintainer"},
        Open.SIGNED: {"visitor", "signed in", "maintainer"},
        Open.SIGNED_IN: {"signed in", "maintainer"},
        LEVEL: {"maintainer"},
        REJECTION: set(),
    }
