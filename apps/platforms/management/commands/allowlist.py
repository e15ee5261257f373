"""`manage.py allowlist lint|import|export FILE`: check a file, make the hub's listing equal to it, write one."""

import hashlib
import sys
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.audit.services import command_actor
from apps.core.clock import now
from apps.core.errors import Problem
from apps.platforms.allowlist import Allowlist, AllowlistError, dump, parse
from apps.platforms.allowlist_diff import compare
from apps.platforms.selectors import former_names, known_entries, listing
from apps.platforms.services import import_by_hand

STANDARD_INPUT = "standard input"


class Command(BaseCommand):
    help = "Check, read or write an allowlist file. A bad one is refused whole, with line, column and what to write."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        linter = verbs.add_parser("lint", help="name every problem of the file; exit status 1 when there is one")
        importer = verbs.add_parser("import", help="make the hub's listing equal to the file")
        exporter = verbs.add_parser("export", help="write the hub's listing to the file")
        linter.set_defaults(skip_checks=True)  # a file can be checked where no hub is set up
        for reader in (linter, importer):
            reader.add_argument("file", help="path of the file, or - for standard input")
        importer.add_argument("--dry-run", action="store_true", help="show what would change, change nothing")
        exporter.add_argument("file", help="path of the file, or - for standard output")

    def handle(self, *args: object, **options: object) -> None:
        name = str(options["file"])
        match options["verb"]:
            case "lint":
                self._lint(name)
            case "import":
                self._import(name, is_dry_run=bool(options["dry_run"]))
            case _:
                self._export(name)

    def _lint(self, name: str) -> None:
        try:
            allowlist = parse(_read(name).decode())
        except AllowlistError as error:
            for finding in error.findings:
                self.stdout.write(f"{_shown(name)}: {finding}")
            count = len(error.findings)
            raise CommandError(f"{_shown(name)}: {count} problem{'' if count == 1 else 's'}.") from None
        self.stdout.write(f"{_shown(name)}: {len(allowlist.entries)} entries, no problem")

    def _import(self, name: str, *, is_dry_run: bool) -> None:
        raw = _read(name)
        try:
            allowlist = parse(raw.decode())
        except AllowlistError as error:
            raise CommandError(f"{name} is refused, nothing changed.\n{error}") from None
        lines = _preview(allowlist) if is_dry_run else _apply(allowlist, name, raw)
        for line in lines:
            self.stdout.write(line)
        verb = "would change" if is_dry_run else "changed"
        self.stdout.write(f"{len(allowlist.entries)} entries read, {len(lines)} {verb}")

    def _export(self, name: str) -> None:
        entries = listing()
        text = dump(entries)
        if name == "-":
            self.stdout.write(text, ending="")
            return
        try:
            Path(name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{name}: {error.strerror}.") from None
        self.stdout.write(f"{name}: {len(entries)} entries written")


def _shown(name: str) -> str:
    return STANDARD_INPUT if name == "-" else name


def _read(name: str) -> bytes:
    """The file's bytes, which are UTF-8. Raises CommandError."""
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        raw.decode()
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise CommandError(f"{_shown(name)}: byte {error.start} is not UTF-8. Save the file as UTF-8.") from None
    return raw


def _preview(allowlist: Allowlist) -> list[str]:
    return [one.summary for one in compare(known_entries(), allowlist.renamed(former_names()).entries)]


def _apply(allowlist: Allowlist, name: str, raw: bytes) -> list[str]:
    try:
        changes = import_by_hand(
            allowlist=allowlist,
            source=STANDARD_INPUT if name == "-" else Path(name).name,
            sha256=hashlib.sha256(raw).hexdigest(),
            actor=command_actor("allowlist import"),
            now=now(),
        )
    except Problem as problem:
        raise CommandError(problem.detail) from None
    return [f"{change.summary} (#{change.event_seq})" for change in changes]
