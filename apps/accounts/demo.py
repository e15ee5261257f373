"""The people of the demo. They exist in demo mode only, with passwords that everyone may read."""

import datetime
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from apps.accounts.models import User
from apps.accounts.policy import Role
from apps.accounts.services import grant_role
from apps.audit.services import command_actor


@dataclass(frozen=True)
class DemoAccount:
    """`role` as the banner says it; `member_of` is a platform's repository, for a vendor's account."""

    username: str
    password: str
    role: Role
    member_of: str = ""

    @property
    def email(self) -> str:
        """Nobody's address, so that the demo writes e-mails: into files."""
        return f"{self.username}@example.com"


DEMO_ACCOUNTS = (
    DemoAccount("demo-maintainer", "demo-maintainer", Role.MAINTAINER),
    DemoAccount("demo-vendor", "demo-vendor", Role.VENDOR_MEMBER, member_of="pallas-demo/torch-pallas"),
    DemoAccount("demo-operator", "demo-operator", Role.OPERATOR),
    DemoAccount("demo-admin", "demo-admin", Role.ADMIN),
)


@transaction.atomic
def ensure_demo_accounts(*, now: datetime.datetime) -> None:
    """Create the demo's accounts where they are missing. Raises RuntimeError outside demo mode."""
    if not settings.DEMO:
        raise RuntimeError("demo accounts exist only with ACCELHUB_DEMO")
    for account in DEMO_ACCOUNTS:
        user, is_new = User.objects.get_or_create(
            username=account.username, defaults={"is_demo": True, "email": account.email}
        )
        if is_new:
            user.set_password(account.password)
            user.save(update_fields=["password"])
        if account.role is not Role.VENDOR_MEMBER:
            grant_role(user=user, role=account.role, actor=command_actor("seed_demo"), now=now)
