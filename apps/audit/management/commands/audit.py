"""`manage.py audit verify|export|checkpoint|grants`: the log, proved, saved, signed and guarded.

Offline `verify --export` needs no database and no settings: whoever kept a checkpoint runs it on a machine of theirs.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from apps.audit import checkpoints, grants, offline, publishing, services
from apps.audit.checkpoints import CheckpointError, Signed
from apps.audit.export import Scope
from apps.audit.exporting import lines_of_log
from apps.core.clock import now


class Command(BaseCommand):
    help = "Prove the decision log's chain, export it, sign checkpoints of it, guard its tables."
    requires_system_checks: list[str] = []  # the offline proof has no hub to check; the other verbs check below

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verify = verbs.add_parser("verify", help="walk the chain from the first event to the head")
        verify.add_argument("--export", metavar="FILE", help="of this export instead of the hub's own log")
        kept = "a checkpoint that was kept: nothing was rewritten or cut off since; may be repeated"
        verify.add_argument("--checkpoint", metavar="FILE", action="append", default=[], help=kept)
        verify.add_argument("--public-key", metavar="KEY", help="the hub's key, in base64 or a file, known beforehand")
        export = verbs.add_parser("export", help="write the whole log, every body, as JSON lines")
        export.add_argument("file", help="- for standard output")
        export.add_argument("--public", action="store_true", help="what /decisions/export.jsonl answers")
        verbs.add_parser("checkpoint", help="sign a checkpoint of the log as it stands")
        guard = verbs.add_parser("grants", help="print what leaves the hub's role reading and appending")
        guard.add_argument("role", nargs="?", default="", help="left out: what the present role could do")
        guard.add_argument("--apply", action="store_true", help="run the statements, as the tables' owner")

    def handle(self, *args: object, **options: Any) -> None:
        if options["verb"] == "verify" and (options["export"] or options["checkpoint"] or options["public_key"]):
            self.prove_export(options["export"], options["checkpoint"], options["public_key"])
            return
        if not options.get("skip_checks"):
            self.check()
        match options["verb"]:
            case "verify":
                self.verify()
            case "export":
                self.export(options["file"], Scope.PUBLIC if options["public"] else Scope.FULL)
            case "checkpoint":
                self.checkpoint()
            case "grants":
                self.guard(options["role"], apply=options["apply"])

    def verify(self) -> None:
        proof = services.verify(now=now())
        if not proof.is_sound:
            raise CommandError(f"Broken after event {proof.verified_to}: {proof.finding}.")
        self.stdout.write(f"{proof.verified_to} events, chain sound, head {proof.head_hash}")

    def prove_export(self, export: str | None, kept: Sequence[str], public_key: str | None) -> None:
        if not export:
            raise CommandError("--checkpoint and --public-key are about an export: give --export FILE too.")
        signed = _read_checkpoints(kept, public_key)
        try:
            with open(export, "rb") as lines:
                found = offline.examine(lines, signed)
        except OSError as error:
            raise CommandError(f"{export}: cannot be read ({error.strerror}).") from error
        if found.finding:
            raise CommandError(f"Broken after event {found.verified_to}: {found.finding}.")
        self.stdout.write(
            f"{found.verified_to} events of {found.hub}, {found.withheld} of them withheld, chain sound, head "
            f"{found.head_hash}"
        )
        for each in signed:
            self.stdout.write(
                f"Nothing up to event {each.seq} was changed since checkpoint {each.number} of {each.at}, key "
                f"{each.key_id}"
            )
        if not signed:
            self.stdout.write("Without a checkpoint that was kept, this proves no more than that the file fits itself")

    def export(self, file: str, scope: Scope) -> None:
        pieces = lines_of_log(scope, now=now())
        if file == "-":
            for piece in pieces:
                self.stdout.write(piece, ending="")
            return
        path = Path(file)
        draft = path.with_name(f"{path.name}.{os.getpid()}.new")
        try:
            # Every body stands in it, also of events that are no public decisions.
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
                out.writelines(pieces)
            draft.replace(path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise CommandError(f"{file}: cannot be written ({error.strerror}).") from error

    def checkpoint(self) -> None:
        try:
            made = publishing.make(now=now())
        except CheckpointError as error:
            raise CommandError(f"No checkpoint: {error}.") from error
        self.stdout.write(f"checkpoint {made.number} to event {made.seq}, key {made.key_id}")

    def guard(self, role: str, *, apply: bool) -> None:
        if not role:
            self.say_powers(grants.powers())
            return
        if not grants.exists(role):
            raise CommandError(f"There is no role {role!r}: make it with CREATE ROLE … LOGIN.")
        if apply:
            if not grants.may_grant():
                raise CommandError(f"{grants.powers().role} does not own the log's tables: run it as who migrates.")
            with transaction.atomic():
                grants.apply(role)
            self.say_powers(grants.powers(role))
            return
        self.stdout.write("".join(f"{statement};\n" for statement in grants.statements(role)), ending="")

    def say_powers(self, found: grants.Powers) -> None:
        if found.only_appends:
            self.stdout.write(f"{found.role} may read the log and append to it, nothing else")
            return
        self.stdout.write(f"{found.role} could rewrite the log: it {', '.join(found.beyond)}")


def _read_checkpoints(files: Sequence[str], public_key: str | None) -> list[Signed]:
    """The kept checkpoints by number, each by its own signature and all by the key where one is given."""
    signed = []
    for file in files:
        try:
            signed.append(checkpoints.read_file(Path(file).read_text()))
        except CheckpointError as error:
            raise CommandError(f"{file} {error}.") from error
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{file}: cannot be read ({error}).") from error
    signed.sort(key=lambda each: each.number)
    if public_key is not None:
        key = _read_public_key(public_key)
        for each in signed:
            if each.public_key != key:
                raise CommandError(
                    f"Checkpoint {each.number} is signed by the key {each.key_id}, not by {checkpoints.key_id(key)}: "
                    "it is another hub's, or of another key of this one."
                )
    if fault := checkpoints.fault_of_series(signed):
        raise CommandError(f"The checkpoints do not belong together: {fault}.")
    return signed


def _read_public_key(given: str) -> str:
    try:
        return checkpoints.read_public_key(Path(given).read_text() if Path(given).is_file() else given)
    except (CheckpointError, OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--public-key {error}.") from error
