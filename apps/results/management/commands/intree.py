"""`manage.py intree …`: which of upstream's own workflows report for which in-tree platform."""

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.audit.services import command_actor
from apps.core.clock import now
from apps.core.errors import Problem
from apps.core.github import GitHubRefused, GitHubUnavailable, client
from apps.platforms.models import Platform
from apps.results.models import InTreeSource
from apps.results.origins import add_source, remove_source


class Command(BaseCommand):
    help = "Say which workflows of the upstream repository report for which platform of its own tree."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        add = verbs.add_parser("add", help="take reports of this workflow for this platform")
        add.add_argument("slug", help="the platform: manage.py platform create makes one")
        add.add_argument("workflow", help=".github/workflows/<file>.yml in the upstream repository")
        add.add_argument("--ref", default="refs/heads/main", help="a glob; default: %(default)s")
        add.add_argument("--device", help="the word that its tests carry, such as cuda for ROCm; default: the slug")
        remove = verbs.add_parser("remove", help="take them no longer; those that came stay")
        remove.add_argument("slug")
        remove.add_argument("workflow")
        verbs.add_parser("list", help="what reports for what")

    def handle(self, *args: object, **options: str) -> None:
        try:
            for line in {"add": self._add, "remove": self._remove, "list": self._list}[options["verb"]](options):
                self.stdout.write(line)
        except Problem as problem:
            raise CommandError(problem.detail) from None
        except Platform.DoesNotExist:
            raise CommandError(f"There is no platform {options['slug']!r}.") from None
        except (GitHubRefused, GitHubUnavailable) as error:
            raise CommandError(f"Nothing changed: {error}.") from None

    def _add(self, options: dict[str, str]) -> list[str]:
        source = add_source(
            platform=Platform.objects.get(slug=options["slug"]),
            workflow=options["workflow"],
            ref=options["ref"],
            device=options["device"] or options["slug"],
            upstream=client().repository_identity(settings.UPSTREAM_REPO),
            actor=command_actor("intree add"),
            now=now(),
        )
        return [f"{source.workflow}@{source.ref} of {settings.UPSTREAM_REPO} reports for {source.platform}"]

    def _remove(self, options: dict[str, str]) -> list[str]:
        platform = Platform.objects.get(slug=options["slug"])
        actor = command_actor("intree remove")
        remove_source(platform=platform, workflow=options["workflow"], actor=actor, now=now())
        return [f"{options['workflow']} no longer reports for {platform}"]

    def _list(self, options: dict[str, str]) -> list[str]:
        return [str(source) for source in InTreeSource.objects.filter(removed_at=None).select_related("platform")]
