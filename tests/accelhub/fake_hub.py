"""A supervised hub whose programs are a few lines each: `python -m tests.accelhub.fake_hub '{"web": "code", …}'`.

The keys are rows of the real table (web, relay, heavy, beat, simulate) or steps before it (migrate, static, seed); what
is not given does nothing. PostgreSQL and Redis are switched off by URL.
"""

import json
import os
import signal
import sys

from accelhub import supervisor
from accelhub.embedded import EmbeddedError
from accelhub.env import paths
from accelhub.programs import PYTHON, Program
from accelhub.programs import programs as real_programs

IDLE = "import time; time.sleep(600)"
STEPS = {"migrate": "MIGRATE", "static": "COLLECT_STATIC", "seed": "SEED_DEMO"}


def main() -> None:
    # Tests may run below nohup, which ignores it for all that it starts.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    code: dict[str, str] = json.loads(sys.argv[1])
    os.environ["DATABASE_URL"] = "postgres://db.invalid/hub"
    os.environ["REDIS_URL"] = "redis://redis.invalid"
    fakes = tuple(
        Program(real.name, (PYTHON, "-c", code.get(real.name, IDLE)), stop_seconds=1, demo_only=real.demo_only)
        for real in real_programs(paths().data)
    )
    replaced: dict[str, object] = {"programs": lambda _data: fakes}
    for name, constant in STEPS.items():
        replaced[constant] = Program(name, (PYTHON, "-c", code.get(name, "pass")), stop_seconds=1)
    for name, fake in replaced.items():
        setattr(supervisor, name, fake)
    try:
        supervisor.Supervisor(
            paths(),
            with_demo=os.environ.get("ACCELHUB_DEMO") != "0",
            base_url=f"http://127.0.0.1:{os.environ['PORT']}",
            banner=lambda: "the banner",
            out=sys.stdout,
        ).run()
    except EmbeddedError as error:
        sys.exit(error.message)


if __name__ == "__main__":
    main()
