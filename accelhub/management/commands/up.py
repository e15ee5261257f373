"""`manage.py up [--no-demo]`: a whole hub in the foreground, until Ctrl-C."""

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.urls import reverse

from accelhub.embedded import EmbeddedError
from accelhub.env import paths
from accelhub.supervisor import Supervisor


class Command(BaseCommand):
    help = "Run the hub: web, workers, beat, and PostgreSQL and Redis unless their URLs are set."
    # The children check for themselves, with settings read after this command has prepared what they read.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--no-demo", action="store_true", help="no demo, even with ACCELHUB_DEMO")

    def handle(self, *args: Any, **options: Any) -> None:
        with_demo = settings.DEMO and not options["no_demo"]
        try:
            Supervisor(
                paths(),
                with_demo=with_demo,
                base_url=settings.BASE_URL,
                banner=lambda: banner(settings.BASE_URL, with_demo=with_demo),
                out=sys.stdout,
            ).run()
        except EmbeddedError as error:
            sys.exit(error.message)


def banner(base_url: str, *, with_demo: bool) -> str:
    """What whoever started the hub reads when it answers."""
    lines = ["", f"  AccelHub runs at {base_url}"]
    if with_demo:
        from apps.accounts.demo import DEMO_ACCOUNTS

        width = max(len(account.username) for account in DEMO_ACCOUNTS)
        lines += ["", f"  Sign in at {base_url}{reverse('accounts:login')} as"]
        lines += [
            f"    {account.username:<{width}}  password {account.password:<{width}}  {account.role}"
            for account in DEMO_ACCOUNTS
        ]
    return "\n".join([*lines, "", "  Stop it with Ctrl-C.", ""])
