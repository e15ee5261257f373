"""`manage.py grant USER ROLE [--github]`: how the first maintainer, operator or admin comes to be."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.models import User
from apps.accounts.policy import GRANTABLE, Role
from apps.accounts.services import account_of_github, grant_role
from apps.audit.services import command_actor
from apps.core.clock import now
from apps.core.github import GitHubRefused, GitHubUnavailable, GitHubUser


class Command(BaseCommand):
    help = "Give a user a role. The grant stands in the log, but not among the public decisions."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", metavar="user")
        parser.add_argument("role", choices=[role.value for role in GRANTABLE])
        parser.add_argument(
            "--github",
            action="store_true",
            help="the user is a GitHub login, who need not have signed in yet: GitHub is asked for their numeric id",
        )

    def handle(self, *args: object, **options: Any) -> None:
        name = options["username"]
        user = _of_github(name) if options["github"] else _of_the_hub(name)
        role = Role(options["role"])
        is_new = grant_role(user=user, role=role, actor=command_actor("grant"), now=now())
        self.stdout.write(f"{user} {'is now' if is_new else 'already was'} {role.label.lower()}")


def _of_the_hub(username: str) -> User:
    try:
        return User.objects.get(username=username)
    except User.DoesNotExist:
        raise CommandError(
            f"There is no user {username!r}. For a GitHub login add --github; for a name and a password make one with: "
            "manage.py createsuperuser"
        ) from None


def _of_github(login: str) -> User:
    try:
        identity = GitHubUser(api_url=settings.GITHUB_API_URL).identity_of(login)
    except GitHubRefused:
        raise CommandError(f"GitHub knows no user {login!r}.") from None
    except GitHubUnavailable as error:
        raise CommandError(f"{error}. Try again in a few minutes.") from None
    return account_of_github(identity=identity, now=now())
