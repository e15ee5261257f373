"""`manage.py quarantine import FILE`: take upstream's list of disabled tests from a file."""

import sys
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.audit.services import command_actor
from apps.core.clock import now
from apps.quarantine.disabled_list import GUARDS, Refusal
from apps.quarantine.upstream_sync import take

STANDARD_INPUT = "standard input"


class Command(BaseCommand):
    help = "Take upstream's list of disabled tests. It is shown beside tests; no result is judged by it."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        importer = verbs.add_parser("import", help="make the copy that is shown equal to the file")
        importer.add_argument("file", help="path of the file, or - for standard input")
        importer.add_argument(
            "--accept-shrink", action="store_true", help="take it although much of the list is gone at once"
        )

    def handle(self, *args: object, **options: object) -> None:
        name = str(options["file"])
        taken = take(
            content=_read(name),
            source=STANDARD_INPUT if name == "-" else Path(name).name,
            actor=command_actor("quarantine import"),
            is_accepted=bool(options["accept_shrink"]),
            now=now(),
        )
        if isinstance(taken, Refusal):
            raise CommandError(f"{name} is refused, nothing changed: {taken.detail}. {GUARDS[taken.kind]}")
        left_out = f", {taken.left_out:,} lines of another form left out" if taken.left_out else ""
        self.stdout.write(
            f"{taken.total:,} disabled tests: {taken.added:,} new, {taken.changed:,} changed, "
            f"{taken.removed:,} removed{left_out}"
        )


def _read(name: str) -> bytes:
    """Raises CommandError."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}.") from None
