"""`manage.py apitoken USERNAME --note TEXT`: make an API token and print it once."""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.models import User
from apps.accounts.services import create_api_token
from apps.audit.services import command_actor
from apps.core.clock import now


class Command(BaseCommand):
    help = "Make an API token for a user. It is printed once and cannot be read again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--note", default="made at the command line", help="what the token is for")

    def handle(self, *args: object, **options: str) -> None:
        try:
            user = User.objects.get(username=options["username"])
        except User.DoesNotExist:
            raise CommandError(f"There is no user {options['username']!r}.") from None
        self.stdout.write(create_api_token(user=user, note=options["note"], actor=command_actor("apitoken"), now=now()))
