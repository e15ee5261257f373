"""`manage.py audit verify`: prove that the log holds, or name the first broken link."""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.audit import services
from apps.core.clock import now


class Command(BaseCommand):
    help = "Prove the decision log's chain."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("verify", help="walk the chain from the first event to the head")

    def handle(self, *args: object, **options: object) -> None:
        proof = services.verify(now=now())
        if not proof.is_sound:
            raise CommandError(f"Broken after event {proof.verified_to}: {proof.finding}.")
        self.stdout.write(f"{proof.verified_to} events, chain sound, head {proof.head_hash}")
