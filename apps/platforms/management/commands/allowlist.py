"""`manage.py allowlist import FILE`: make the hub's listing equal to an allowlist file in upstream's format."""

import hashlib
import sys
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from apps.audit.services import command_actor
from apps.core.clock import now
from apps.platforms.allowlist import AllowlistError, parse
from apps.platforms.services import import_allowlist


class Command(BaseCommand):
    help = "Read an allowlist file. A bad file is refused whole, with line, column and what to write instead."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        importer = verbs.add_parser("import", help="make the hub's listing equal to the file")
        importer.add_argument("file", help="path of the file, or - for standard input")
        importer.add_argument("--dry-run", action="store_true", help="show what would change, change nothing")

    def handle(self, *args: object, **options: object) -> None:
        name = str(options["file"])
        try:
            raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
            text = raw.decode()
        except OSError as error:
            raise CommandError(f"{name}: {error.strerror}.") from None
        except UnicodeDecodeError as error:
            raise CommandError(f"{name}: byte {error.start} is not UTF-8. Save the file as UTF-8.") from None
        try:
            allowlist = parse(text)
        except AllowlistError as error:
            raise CommandError(f"{name} is refused, nothing changed.\n{error}") from None
        with transaction.atomic():
            changes = import_allowlist(
                allowlist=allowlist,
                source="standard input" if name == "-" else Path(name).name,
                sha256=hashlib.sha256(raw).hexdigest(),
                actor=command_actor("allowlist import"),
                now=now(),
            )
            if options["dry_run"]:
                transaction.set_rollback(True)
        for change in changes:
            self.stdout.write(change.summary if options["dry_run"] else f"{change.summary} (#{change.event_seq})")
        verb = "would change" if options["dry_run"] else "changed"
        self.stdout.write(f"{len(allowlist.entries)} entries read, {len(changes)} {verb}")
