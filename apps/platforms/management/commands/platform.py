"""`manage.py platform create|add-member`: what no allowlist brings."""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.models import User
from apps.audit.services import command_actor
from apps.core.clock import now
from apps.core.errors import Problem
from apps.platforms.models import Platform
from apps.platforms.services import add_member, create_platform


class Command(BaseCommand):
    help = "Make a platform that no allowlist brings (an in-tree one), or let a user speak for a platform."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make a platform")
        create.add_argument("slug")
        create.add_argument("name")
        create.add_argument("--kind", choices=[kind.value for kind in Platform.Kind], default=Platform.Kind.IN_TREE)
        member = verbs.add_parser("add-member", help="let a user see what is the platform's own")
        member.add_argument("slug")
        member.add_argument("username")

    def handle(self, *args: object, **options: str) -> None:
        actor = command_actor(f"platform {options['verb']}")
        try:
            if options["verb"] == "create":
                kind = Platform.Kind(options["kind"])
                create_platform(slug=options["slug"], name=options["name"], kind=kind, actor=actor, now=now())
                self.stdout.write(f"/platforms/{options['slug']}/ is there")
                return
            platform = Platform.objects.get(slug=options["slug"])
            user = User.objects.get(username=options["username"])
        except Problem as problem:
            raise CommandError(problem.detail) from None
        except Platform.DoesNotExist:
            raise CommandError(f"There is no platform {options['slug']!r}.") from None
        except User.DoesNotExist:
            raise CommandError(f"There is no user {options['username']!r}.") from None
        is_new = add_member(platform=platform, user=user, actor=actor, now=now())
        self.stdout.write(f"{user} {'now speaks' if is_new else 'already spoke'} for {platform}")
