"""What a hub runs: one table, which `manage.py up` starts and docker/compose.yml repeats (a test compares them)."""

import sys
from dataclasses import dataclass
from pathlib import Path

PYTHON = "python"
_CELERY = (PYTHON, "-m", "celery", "--quiet", "--app", "accelhub")
# Workers have nothing to tell each other, at their start or later.
_WORKER = (*_CELERY, "worker", "--without-mingle", "--without-gossip", "--loglevel=warning")


@dataclass(frozen=True)
class Program:
    """One long-running part of a hub. `stop_seconds`: how long it may finish its work after SIGTERM."""

    name: str
    arguments: tuple[str, ...]
    stop_seconds: float
    demo_only: bool = False

    @property
    def argv(self) -> list[str]:
        """The command, run by the interpreter that runs us."""
        return [sys.executable if word == PYTHON else word for word in self.arguments]


def programs(data: Path) -> tuple[Program, ...]:
    """The table, for a hub that keeps its files in `data`, in the order of the start."""
    return (
        Program(
            "web",
            (PYTHON, "-m", "gunicorn", "--config", "python:accelhub.gunicorn", "accelhub.wsgi:application"),
            stop_seconds=10,
        ),
        Program(
            "relay",
            (*_WORKER, "--queues=relay", "--hostname=relay@%h", "--pool=threads", "--concurrency=25"),
            stop_seconds=15,
        ),
        Program(
            "heavy",
            # One process, replaced when it has grown beyond 2 GB (the number is in KiB).
            (
                *_WORKER,
                *("--queues=heavy", "--hostname=heavy@%h"),
                *("--pool=prefork", "--concurrency=1", "--max-memory-per-child=2000000"),
            ),
            stop_seconds=15,
        ),
        Program(
            "beat",
            (*_CELERY, "beat", f"--schedule={data}/beat-schedule", "--loglevel=warning"),
            stop_seconds=5,
        ),
        Program("simulate", (PYTHON, "manage.py", "simulate"), stop_seconds=10, demo_only=True),
    )


MIGRATE = Program("migrate", (PYTHON, "manage.py", "migrate", "--no-input"), stop_seconds=30)
COLLECT_STATIC = Program(
    "static", (PYTHON, "manage.py", "collectstatic", "--no-input", "--verbosity=0"), stop_seconds=10
)
SEED_DEMO = Program("seed", (PYTHON, "manage.py", "seed_demo"), stop_seconds=10, demo_only=True)

# Who takes work in stops before who does it, and both before what they keep it in.
STOP_ORDER = (
    ("migrate", "static", "seed"),
    ("simulate",),
    ("beat",),
    ("web",),
    ("relay", "heavy"),
    ("redis",),
    ("postgres",),
)
