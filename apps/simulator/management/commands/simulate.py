"""`manage.py simulate`: a local GitHub, an upstream repository and fictional downstreams around a demo hub."""

import signal
import threading
from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.simulator.show import PortTaken, Show, Stage

LOOPBACK = {"127.0.0.1", "localhost"}


class Command(BaseCommand):
    help = "Play the outside world for a demo hub (ACCELHUB_DEMO): GitHub, upstream events, fictional downstreams."
    # It asks nothing of the database, and waits for a hub that may still be starting.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--seed", type=int, default=1, help="decides titles, ids and how every job ends (default 1)"
        )
        parser.add_argument(
            "--every", type=float, default=20.0, metavar="SECONDS", help="between events, after a quick first dozen"
        )
        parser.add_argument(
            "--events", type=int, metavar="N", help="send N events, let their jobs finish, and end (default: go on)"
        )

        parser.add_argument(
            "--history",
            type=int,
            default=settings.DEMO_HISTORY_DAYS,
            metavar="DAYS",
            help="at a data folder's first start, fill in so many days before now; 0: none "
            "(default ACCELHUB_DEMO_HISTORY_DAYS: %(default)s)",
        )

    def handle(self, *args: Any, seed: int, every: float, events: int | None, history: int, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("simulate plays a pretended GitHub: it runs only with ACCELHUB_DEMO=1.")
        github = urlsplit(settings.GITHUB_API_URL)
        if github.scheme != "http" or github.hostname not in LOOPBACK or not github.port:
            raise CommandError(
                f"The hub's GitHub is {settings.GITHUB_API_URL}, not a port on 127.0.0.1. "
                "Start the demo first (make demo), and leave ACCELHUB_GITHUB_API_URL unset."
            )
        if every <= 0 or (events is not None and events < 1):
            raise CommandError("--every and --events must be above zero.")
        if history < 0:
            raise CommandError("--history cannot be below zero.")
        stop = threading.Event()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: stop.set())
        stage = Stage(
            hub_url=settings.BASE_URL,
            port=github.port,
            app_id=settings.GITHUB_APP_ID,
            app_private_key=settings.GITHUB_APP_PRIVATE_KEY,
            webhook_secret=settings.GITHUB_WEBHOOK_SECRET,
            audience=settings.OIDC_AUDIENCE,
            upstream=settings.UPSTREAM_REPO,
            data_dir=settings.DATA_DIR,
        )
        try:
            Show(stage, stop=stop, seed=seed, every=every, events=events, history=history).run()
        except PortTaken as error:
            raise CommandError(f"{error}. Is a simulator running already?") from error
