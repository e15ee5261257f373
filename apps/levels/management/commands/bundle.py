"""`manage.py bundle save|verify`: evidence bundles, saved and counted again from themselves alone.

`verify --file` reads nothing but the file: no database, no settings. Whoever kept a bundle runs it on a machine of
theirs, with the hub's code.
"""

import hashlib
import uuid
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.audit.chain import canonical
from apps.levels.bundle import BundleError, compared, hash_of, parsed


class Command(BaseCommand):
    help = "Save an evidence bundle, or count every figure of one again from its own rows."
    requires_system_checks: list[str] = []  # a bundle in a file has no hub to check

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        save = verbs.add_parser("save", help="write a promotion's newest bundle, or another, to a file")
        save.add_argument("promotion", help="the promotion's public id")
        save.add_argument("file")
        save.add_argument("--number", type=int, default=0, help="which of its bundles; left out: the newest")
        verify = verbs.add_parser("verify", help="count every figure again; a difference is an error")
        verify.add_argument("promotion", nargs="?", help="the promotion's public id: its newest bundle in the hub")
        verify.add_argument("--file", help="of this file instead")
        verify.add_argument("--sha256", help="the hash that the log has: the bundle has to be that one")

    def handle(self, *args: object, **options: Any) -> None:
        try:
            if options["verb"] == "save":
                self.save(options["promotion"], options["file"], options["number"])
            elif options["file"]:
                self.verify(parsed(Path(options["file"]).read_bytes()), options["sha256"])
            elif options["promotion"]:
                self.verify(_opened(options["promotion"], 0), options["sha256"])
            else:
                raise CommandError("Name a promotion, or --file FILE.")
        except BundleError as error:
            raise CommandError(f"No bundle that can be counted: {error}.") from None
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}.") from None

    def save(self, promotion: str, file: str, number: int) -> None:
        content = canonical(_opened(promotion, number)).encode()
        Path(file).write_bytes(content)
        self.stdout.write(f"{len(content):,} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")

    def verify(self, bundle: dict[str, Any], expected: str | None) -> None:
        sha256 = hash_of(bundle)
        if expected and sha256 != expected.lower():
            raise CommandError(
                f"The bundle's SHA-256 is {sha256}, not {expected}: it is another bundle, or was changed."
            )
        different = 0
        for one in compared(bundle):
            different += not one.is_same
            mark = "same" if one.is_same else "DIFFERENT"
            stated, counted = one.stated.get("shown", "nothing"), one.counted.get("shown", "nothing")
            self.stdout.write(f"{one.criterion}: stated {stated}, counted {counted}: {mark}")
        if different:
            raise CommandError(f"{different} figures are not what the bundle's own rows give.")
        self.stdout.write(f"Every figure follows from the bundle's own rows. SHA-256 {sha256}")


def _opened(promotion: str, number: int) -> dict[str, Any]:
    from apps.levels.models import EvidenceBundle

    try:
        found = EvidenceBundle.objects.filter(promotion__public_id=uuid.UUID(promotion))
    except (ValueError, ValidationError):
        raise CommandError(f"{promotion}: no public id of a promotion.") from None
    bundle = (found.filter(number=number) if number else found.order_by("-number")).first()
    if bundle is None:
        raise CommandError(f"{promotion}: no such promotion or bundle here.")
    return bundle.opened()
