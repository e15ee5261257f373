"""`manage.py seed_demo`: what a demo hub starts with. Run by `manage.py up`; adds what is missing, changes nothing."""

import datetime
import hashlib

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from accelhub.kind import refuse_other_database
from apps.accounts.demo import DEMO_ACCOUNTS, ensure_demo_accounts
from apps.accounts.models import User
from apps.audit.services import command_actor
from apps.core.clock import now
from apps.core.enums import Kind
from apps.core.github import RepositoryIdentity
from apps.platforms.allowlist import parse
from apps.platforms.models import Platform, Repository
from apps.platforms.pipelines import map_pipeline
from apps.platforms.services import add_member, create_platform, import_allowlist, rename_platform
from apps.results.origins import add_source
from apps.simulator import baseline
from apps.simulator.buildkite import organization_id, pipeline_id
from apps.simulator.characters import CHARACTERS, allowlist_text
from apps.simulator.upstream import OWNER_ID, REPOSITORY_ID


class Command(BaseCommand):
    help = "Create the demo's people and list its fictional platforms. Only with ACCELHUB_DEMO."

    def handle(self, *args: object, **options: object) -> None:
        if not settings.DEMO:
            raise CommandError("seed_demo is for the demo: set ACCELHUB_DEMO=1.")
        refuse_other_database(Kind.DEMO)
        moment, actor = now(), command_actor("seed_demo")
        if not Repository.objects.exists() and settings.DEMO_HISTORY_DAYS > 0:
            # Listed before the history begins, as its dispatches presume.
            moment -= datetime.timedelta(days=settings.DEMO_HISTORY_DAYS + 1)
        with transaction.atomic():
            ensure_demo_accounts(now=moment)
            # Once: later levels are what people decided in the demo, and a restart keeps them.
            if Repository.objects.exists():
                return
            text = allowlist_text()
            import_allowlist(
                allowlist=parse(text),
                source="the demo's allowlist",
                sha256=hashlib.sha256(text.encode()).hexdigest(),
                actor=actor,
                now=moment,
            )
            add_source(
                platform=create_platform(
                    slug=baseline.SLUG, name=baseline.NAME, kind=Platform.Kind.IN_TREE, actor=actor, now=moment
                ),
                workflow=baseline.WORKFLOW_FILE,
                ref=baseline.REF,
                device=baseline.DEVICE,
                upstream=RepositoryIdentity(settings.UPSTREAM_REPO, REPOSITORY_ID, OWNER_ID),
                actor=actor,
                now=moment,
            )
            for character in CHARACTERS:
                platform = Platform.objects.get(repositories__full_name=character.full_name)
                rename_platform(
                    platform=platform,
                    name=character.name,
                    slug=character.name,
                    actor=actor,
                    now=moment,
                )
                if character.ci == "buildkite":
                    map_pipeline(
                        repository=Repository.objects.get(full_name=character.full_name),
                        organization_id=organization_id(character.owner_id),
                        pipeline_id=pipeline_id(character.repository_id),
                        required_claims={"build_branch": ["main"]},
                        actor=actor,
                        now=moment,
                    )
            for account in DEMO_ACCOUNTS:
                if account.member_of:
                    add_member(
                        platform=Platform.objects.get(repositories__full_name=account.member_of),
                        user=User.objects.get(username=account.username),
                        actor=actor,
                        now=moment,
                    )
        self.stdout.write(f"{len(CHARACTERS)} fictional platforms listed")
