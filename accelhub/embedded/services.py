"""Embedded services as a whole: what is wanted, starting and stopping it, and finding a hub that runs already."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from accelhub import processes
from accelhub.embedded.folders import EmbeddedError, FolderLock, claim_new_folder, kind_of, make_data_folder
from accelhub.embedded.postgres import Postgres
from accelhub.embedded.redis import RedisServer
from accelhub.env import Paths, env, paths

Service = Postgres | RedisServer

# How long (seconds) a service may take until it answers: recovery after a crash is the long case.
READY_SECONDS = 60.0

# Commands that read no database. `up` is here because it brings services up itself, for longer than one command.
NEED_NO_SERVICES = frozenset(
    {
        "allowlist lint",
        "up",
        "demo_reset",
        "help",
        "version",
        "--help",
        "-h",
        "--version",
        "check",
        "collectstatic",
        "diffsettings",
        "findstatic",
        "makemigrations",
        "startapp",
    }
)


def wanted_services(where: Paths, *, durable: bool = True) -> list[Service]:
    """The services that no URL names, in the order of their start."""
    wanted: list[Service] = []
    if not env.str("DATABASE_URL", ""):
        wanted.append(Postgres(where, durable=durable))
    if not env.str("REDIS_URL", ""):
        wanted.append(RedisServer(where))
    return wanted


class Services:
    """Embedded services for as long as one process needs them. Their output goes to `<data>/<name>.log`."""

    def __init__(self, where: Paths, services: Sequence[Service]) -> None:
        self._where = where
        self._services = services
        self._running: list[tuple[Service, subprocess.Popen[bytes]]] = []

    def start(self) -> None:
        """Start all and return when each answers. On failure stops what it started and raises EmbeddedError.

        Call under the data folder's lock, from the main thread.
        """
        make_data_folder(self._where.data)
        try:
            for service in self._services:
                service.prepare()
                with self._log_file(service).open("wb") as log:
                    self._running.append((service, start_service(service, log)))
            for service, process in self._running:
                self._await(service, process)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop all, last started first. May be called twice."""
        while self._running:
            service, process = self._running.pop()
            processes.stop(process, service.stop_signal, service.stop_seconds)

    def __enter__(self) -> "Services":
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def _log_file(self, service: Service) -> Path:
        return self._where.data / f"{service.name}.log"

    def _await(self, service: Service, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not service.answers():
            if process.poll() is not None or time.monotonic() > deadline:
                log = self._log_file(service)
                last = (log.read_text(errors="replace").strip().splitlines() or ["no message"])[-1]
                raise EmbeddedError(f"The embedded {service.name} does not start ({last}): see {log}.")
            time.sleep(0.02)


def start_service(service: Service, output: BinaryIO | int) -> subprocess.Popen[bytes]:
    """Start a prepared service with its stdout and stderr going to `output`."""
    return processes.spawn(
        service.argv(),
        death_signal=service.death_signal,
        stdout=output,
        stderr=subprocess.STDOUT,
        **service.options(),
    )


@contextlib.contextmanager
def services_for_command(argv: Sequence[str]) -> Iterator[None]:
    """Around one `manage.py` command: see that its database and Redis answer.

    Attaches to a hub that runs on the data folder; without one, starts the services and stops them afterwards. Does
    nothing for commands that need none, or when both are named by URL. When it cannot, one line on stderr and exit
    status 1.
    """
    where = paths()
    services = wanted_services(where) if _needs_services(argv) else []
    lock = FolderLock(where)
    started = Services(where, services)
    if services:
        try:
            if not _attached(services, lock):
                claim_new_folder(where.data, kind_of(env.bool("ACCELHUB_DEMO", False)))
                started.start()
        except EmbeddedError as error:
            lock.release()
            sys.exit(error.message)
    try:
        yield
    finally:
        started.stop()
        lock.release()


def _needs_services(argv: Sequence[str]) -> bool:
    if len(argv) < 2 or {argv[1], " ".join(argv[1:3])} & NEED_NO_SERVICES:
        return False
    if argv[1:3] == ["audit", "verify"] and any(word.partition("=")[0] == "--export" for word in argv[3:]):
        return False  # it reads files, on a machine that need not have a hub
    return not {"--help", "-h"} & set(argv[2:])


def _attached(services: Sequence[Service], lock: FolderLock) -> bool:
    """True when a running hub's services answer; False with the lock in our hands, when no hub runs.

    A hub that is just starting gets time to become ready. Raises EmbeddedError when its services stay silent.
    """
    deadline = time.monotonic() + READY_SECONDS
    while True:
        if lock.try_acquire():
            return False
        silent = [service.name for service in services if not service.answers()]
        if not silent:
            return True
        if time.monotonic() > deadline:
            raise EmbeddedError(
                f"A hub (pid {lock.holder()}) holds {lock.paths.data}, but its {' and '.join(silent)} does not answer. "
                "Stop it, then try again."
            )
        time.sleep(0.1)
