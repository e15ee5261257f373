"""`manage.py up [--no-demo]`: a whole hub in the foreground, until Ctrl-C."""

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, connection
from django.urls import reverse

from accelhub.checks import unsafe
from accelhub.embedded import EmbeddedError
from accelhub.embedded.folders import kind_of
from accelhub.env import env, paths
from accelhub.kind import refuse_other_database
from accelhub.supervisor import Supervisor
from apps.accounts.demo import DEMO_ACCOUNTS
from apps.simulator.people import PEOPLE
from apps.simulator.show import NOTEBOOK_FILE


class Command(BaseCommand):
    help = "Run the hub: web, workers, beat, and PostgreSQL and Redis unless their URLs are set."
    # Ours run below, a line each. The children check for themselves, with settings read after the demo's are made.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--no-demo", action="store_true", help="no demo, even with ACCELHUB_DEMO")

    def handle(self, *args: Any, **options: Any) -> None:
        with_demo = settings.DEMO and not options["no_demo"]
        if errors := unsafe():
            sys.exit("\n".join(errors))
        if env.str("DATABASE_URL", ""):
            look_at_database(with_demo)
        is_new = not (paths().data / NOTEBOOK_FILE).exists()
        try:
            Supervisor(
                paths(),
                with_demo=with_demo,
                base_url=settings.BASE_URL,
                banner=lambda: banner(settings.BASE_URL, with_demo=with_demo, is_new=is_new),
                out=sys.stdout,
            ).run()
        except EmbeddedError as error:
            sys.exit(error.message)


def look_at_database(with_demo: bool) -> None:
    """See that the database that DATABASE_URL names answers and is of our kind. Ends with one line where it is not."""
    try:
        refuse_other_database(kind_of(with_demo))
    except CommandError as error:
        sys.exit(str(error))
    except OperationalError as error:
        reason = " ".join(str(error).split())
        sys.exit(f"DATABASE_URL: the database does not answer ({reason}). Start it, or correct the address.")
    finally:
        connection.close()


def banner(base_url: str, *, with_demo: bool, is_new: bool) -> str:
    """What whoever started the hub reads when it answers. `is_new`: this demo has no history yet."""
    lines = ["", f"  AccelHub runs at {base_url}"]
    if with_demo:
        width = max(len(account.username) for account in DEMO_ACCOUNTS)
        lines += ["", f"  Sign in at {base_url}{reverse('accounts:login')} as"]
        lines += [
            f"    {account.username:<{width}}  password {account.password:<{width}}  {account.role}"
            for account in DEMO_ACCOUNTS
        ]
        lines += ["", "  or with GitHub (a stand-in) as"]
        lines += [f"    {person.login:<{width}}  {person.about}" for person in PEOPLE]
        if is_new and settings.DEMO_HISTORY_DAYS:
            days = f"{settings.DEMO_HISTORY_DAYS} days of history are being filled in"
            lines += ["", f"  {days}: figures grow for some minutes."]
    if settings.EMAIL_BACKEND.endswith("filebased.EmailBackend"):
        lines += ["", f"  E-mails are files in {settings.EMAIL_FILE_PATH}."]
    return "\n".join([*lines, "", "  Stop it with Ctrl-C.", ""])
