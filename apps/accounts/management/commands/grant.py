"""`manage.py grant USERNAME ROLE`: how the first maintainer, operator or admin comes to be."""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.models import User
from apps.accounts.policy import GRANTABLE, Role
from apps.accounts.services import grant_role
from apps.audit.services import command_actor
from apps.core.clock import now


class Command(BaseCommand):
    help = "Give a user a role. The grant stands in the log, but not among the public decisions."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("role", choices=[role.value for role in GRANTABLE])

    def handle(self, *args: object, **options: str) -> None:
        try:
            user = User.objects.get(username=options["username"])
        except User.DoesNotExist:
            raise CommandError(
                f"There is no user {options['username']!r}. Make one with: manage.py createsuperuser"
            ) from None
        role = Role(options["role"])
        is_new = grant_role(user=user, role=role, actor=command_actor("grant"), now=now())
        self.stdout.write(f"{user} {'is now' if is_new else 'already was'} {role.label.lower()}")
