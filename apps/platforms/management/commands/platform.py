"""`manage.py platform …`: what no allowlist brings, and what only an operator may mend."""

from collections.abc import Callable

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.models import User
from apps.audit.services import command_actor
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.github import GitHubRefused, GitHubUnavailable, client
from apps.platforms.models import Platform, Repository
from apps.platforms.pins import pin_identity
from apps.platforms.services import add_member, attach_repository, create_platform, mark_probe


class Command(BaseCommand):
    help = "Make a platform, let a user speak for one, put a repository under one, pin it anew, or mark it as a probe."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make a platform that no allowlist brings")
        create.add_argument("slug")
        create.add_argument("name")
        create.add_argument("--kind", choices=[kind.value for kind in Platform.Kind], default=Platform.Kind.IN_TREE)
        member = verbs.add_parser("add-member", help="let a user see what is the platform's own")
        member.add_argument("slug")
        member.add_argument("username")
        attach = verbs.add_parser("attach", help="put a repository under a platform; an emptied platform goes")
        attach.add_argument("slug")
        attach.add_argument("repository", help="owner/name")
        probe = verbs.add_parser("probe", help="say that a repository tests the hub itself: it leaves public numbers")
        probe.add_argument("repository", help="owner/name")
        probe.add_argument("--off", action="store_true", help="it no longer does")
        repin = verbs.add_parser("repin", help="replace a repository's numeric ids by what GitHub says now")
        repin.add_argument("repository", help="owner/name")

    def handle(self, *args: object, **options: str) -> None:
        verbs: dict[str, Callable[[dict[str, str]], str]] = {
            "create": self._create,
            "add-member": self._add_member,
            "attach": self._attach,
            "probe": self._probe,
            "repin": self._repin,
        }
        try:
            self.stdout.write(verbs[options["verb"]](options))
        except Problem as problem:
            raise CommandError(problem.detail) from None
        except Platform.DoesNotExist:
            raise CommandError(f"There is no platform {options['slug']!r}.") from None
        except Repository.DoesNotExist:
            raise CommandError(f"There is no repository {options['repository']!r}.") from None
        except User.DoesNotExist:
            raise CommandError(f"There is no user {options['username']!r}.") from None
        except (GitHubRefused, GitHubUnavailable) as error:
            raise CommandError(f"Nothing changed: {error}.") from None

    def _create(self, options: dict[str, str]) -> str:
        kind, actor = Platform.Kind(options["kind"]), command_actor("platform create")
        create_platform(slug=options["slug"], name=options["name"], kind=kind, actor=actor, now=now())
        return f"/platforms/{options['slug']}/ is there"

    def _add_member(self, options: dict[str, str]) -> str:
        platform = Platform.objects.get(slug=options["slug"])
        user = User.objects.get(username=options["username"])
        is_new = add_member(platform=platform, user=user, actor=command_actor("platform add-member"), now=now())
        return f"{user} {'now speaks' if is_new else 'already spoke'} for {platform}"

    def _attach(self, options: dict[str, str]) -> str:
        platform = Platform.objects.get(slug=options["slug"])
        repository = Repository.objects.get(full_name__iexact=options["repository"])
        actor = command_actor("platform attach")
        is_new = attach_repository(repository=repository, platform=platform, actor=actor, now=now())
        return f"{repository} {'now stands' if is_new else 'already stood'} under {platform}"

    def _probe(self, options: dict[str, str]) -> str:
        repository = Repository.objects.get(full_name__iexact=options["repository"])
        is_probe = not options["off"]
        is_new = mark_probe(repository=repository, is_probe=is_probe, actor=command_actor("platform probe"), now=now())
        return f"{repository} {'is now' if is_new else 'was already'} {'a probe' if is_probe else 'no probe'}"

    def _repin(self, options: dict[str, str]) -> str:
        repository = Repository.objects.get(full_name__iexact=options["repository"])
        identity = client().repository_identity(repository.full_name)
        pin_identity(
            repository_id=repository.pk,
            identity=identity,
            source=Repository.PinSource.GITHUB_API,
            actor=command_actor("platform repin"),
            now=now(),
            replace=True,
        )
        return f"{repository} is GitHub id {identity.github_id} of owner {identity.github_owner_id}"
