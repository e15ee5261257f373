"""`manage.py demo_reset`: remove what a demo left in this data folder, so that the next one starts fresh."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from accelhub import demo
from accelhub.embedded import EmbeddedError, FolderLock
from accelhub.embedded.folders import KIND_FILE, LOCK_FILE, kind_of_folder
from accelhub.env import env, paths
from apps.core.enums import Kind
from apps.simulator.show import KEY_FILE, NOTEBOOK_FILE

# Everything a hub puts into its data folder. What else lies there is not ours to remove.
_OURS = (
    *("postgres", "postgres.new-*", "postgres.log", "redis", "redis.log", "static", "beat-schedule*", "mail"),
    # What was uploaded, where files are stored in the data folder.
    *("files", "incoming"),
    *(demo.FILE, KIND_FILE, KEY_FILE, NOTEBOOK_FILE, LOCK_FILE),
)


class Command(BaseCommand):
    help = "Remove the demo's data. Refuses while a hub runs on it, and where no demo ever ran."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        where = paths()
        found = kind_of_folder(where.data)
        if found is Kind.REAL:
            sys.exit(
                f"The data folder {where.data} is kept by a real hub: nothing removed. "
                "Set ACCELHUB_DATA_DIR to the folder of a demo."
            )
        if found is None:
            self.stdout.write(f"There is no demo in {where.data}: nothing removed.")
            return
        try:
            with FolderLock(where):
                for path in ours(where.data):
                    if path.is_dir() and not path.is_symlink():
                        shutil.rmtree(path)
                    else:
                        path.unlink()
                shutil.rmtree(where.runtime, ignore_errors=True)
                if not any(where.data.iterdir()):
                    where.data.rmdir()
        except EmbeddedError as error:
            sys.exit(error.message)
        self.stdout.write(f"The demo's data in {where.data} are removed. `make demo` starts a fresh one.")
        if env.str("DATABASE_URL", ""):
            self.stdout.write("The database that DATABASE_URL names is left as it is: drop it yourself.")


def ours(folder: Path) -> Iterator[Path]:
    """What a hub has put into its data folder."""
    for pattern in _OURS:
        yield from folder.glob(pattern)
