"""`manage.py hud import FILE`: bring upstream's job history in, so that windows and tenure do not restart."""

import contextlib
import sys
from pathlib import Path
from typing import BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.audit.services import command_actor
from apps.core.clock import now
from apps.relay.hud import import_history


class Command(BaseCommand):
    help = "Import job history, one JSON object a line. Lines that cannot be read are told by number and left out."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        importer = verbs.add_parser("import", help="import the jobs and levels of a file, marked as imported")
        importer.add_argument("file", help="path of the file, or - for standard input")

    def handle(self, *args: object, **options: object) -> None:
        name = str(options["file"])
        with contextlib.ExitStack() as stack:
            try:
                lines: BinaryIO = sys.stdin.buffer if name == "-" else stack.enter_context(Path(name).open("rb"))
            except OSError as error:
                raise CommandError(f"{name}: {error.strerror}.") from None
            outcome = import_history(
                lines=lines,
                source="standard input" if name == "-" else Path(name).name,
                actor=command_actor("hud import"),
                now=now(),
            )
        for number, why in outcome.refused:
            self.stderr.write(f"line {number}: {why}")
        self.stdout.write(
            f"{outcome.imported:,} jobs and {outcome.levels:,} levels imported, {outcome.known:,} jobs known already"
        )
        if outcome.refused:
            raise CommandError(f"{len(outcome.refused):,} lines were refused; the others are imported.")
