"""`python -m bench [NAME…]`, with names of NAMES and ALONE: those of NAMES if none is named."""

import os
import sys
import tempfile
from pathlib import Path

NAMES = ("callbacks", "overview", "fanout")
# What takes its time: a proof, and full suites of tests.
ALONE = ("fault", "catalogue", "reports", "questions", "flakes", "gate", "replay", "nightly")


def main(names: list[str]) -> int:
    if unknown := set(names) - {*NAMES, *ALONE}:
        print(f"Unknown: {', '.join(sorted(unknown))}. There are: {', '.join(NAMES + ALONE)}.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="accelhub-bench-") as folder:
        from bench import environment

        os.environ.update(environment.of(Path(folder)))
        from accelhub.embedded import FolderLock, Services, wanted_services
        from accelhub.env import Paths

        where = Paths(Path(folder).resolve())
        with FolderLock(where), Services(where, wanted_services(where)):
            import django

            django.setup()
            from django.core.management import call_command

            call_command("migrate", verbosity=0)
            call_command("collectstatic", verbosity=0, interactive=False)
            for name in names or NAMES:
                module = __import__(f"bench.{name}", fromlist=["run"])
                module.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
