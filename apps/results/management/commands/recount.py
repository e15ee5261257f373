"""`manage.py recount [--days N]`: rebuild the rollups from the jobs."""

from django.core.management.base import BaseCommand, CommandParser

from apps.core.clock import now
from apps.results.services import recount


class Command(BaseCommand):
    help = "Count the last days of jobs anew. Rollups hold nothing that this does not restore."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=int, default=60, help="how many UTC days back, today included (60)")

    def handle(self, *args: object, **options: int) -> None:
        self.stdout.write(f"{recount(days=options['days'], now=now())} repository days counted")
