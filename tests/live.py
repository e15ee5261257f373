"""Fixtures for tests that need more than one transaction: a database of their own, a real server, a real worker.

Django and psycopg are imported inside: this module loads before settings may.
"""

import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import STDOUT, Popen
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from pytest_django import DjangoDbBlocker

if TYPE_CHECKING:
    from redis import Redis

_numbers = itertools.count(1)
# How long (seconds) a process may take to answer. A bound against hanging, not an expectation.
READY_SECONDS = 60.0


def refuse_flushing(item: pytest.Item) -> None:
    """Fail a test that asks for what pytest-django empties with TRUNCATE, and say what to ask for instead."""
    marker = item.get_closest_marker("django_db")
    names = set(getattr(item, "fixturenames", ()))
    flushing = {"transactional_db", "live_server", "django_db_reset_sequences", "django_db_serialized_rollback"}
    if names & flushing or (marker and (marker.kwargs or marker.args)):
        pytest.fail(
            "The audit log refuses TRUNCATE, so no test may flush: use `db`, or `cloned_database` for commits, and "
            "`hub` for a live server.",
            pytrace=False,
        )
    if "cloned_database" in names and (marker or "db" in names):
        pytest.fail("A test uses either `db` or `cloned_database`, not both.", pytrace=False)


@dataclass(frozen=True)
class ClonedDatabase:
    """One test's own database. `environment` is os.environ for a subprocess that is to use it."""

    name: str
    url: str
    redis_url: str

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"DATABASE_URL": self.url, "REDIS_URL": self.redis_url}


@pytest.fixture
def cloned_database(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, empty_redis: None
) -> Iterator[ClonedDatabase]:
    """A copy of the migrated test database, in which everything commits. Django's default connection points at it.

    Threads of the test open connections of their own and close them: `connections.close_all()`.
    """
    from django.conf import settings
    from django.db import connection, connections

    template = connection.settings_dict["NAME"]
    name = f"{template}_{os.getpid()}_{next(_numbers)}"
    with django_db_blocker.unblock():
        connections.close_all()  # a template may have no other users
        administer(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        connection.settings_dict["NAME"] = name
        try:
            yield ClonedDatabase(name, database_url(connection.settings_dict), settings.REDIS_URL)
        finally:
            connections.close_all()
            connection.settings_dict["NAME"] = template
            administer(f'DROP DATABASE "{name}" WITH (FORCE)')


def database_url(settings_dict: dict[str, Any]) -> str:
    """A DATABASE_URL for Django's connection settings, in django-environ's spelling: a socket's folder is a path."""
    user, password, host = (quote(str(settings_dict[key])) for key in ("USER", "PASSWORD", "HOST"))
    login = f"{user}:{password}" if password else user
    place = f"/{host}" if host.startswith("/") else host + (f":{port}" if (port := settings_dict["PORT"]) else "")
    return f"postgres://{login}@{place}/{settings_dict['NAME']}"


def administer(statement: str) -> None:
    """Run a statement about databases, from the database that is none of them."""
    import psycopg
    from django.db import connection

    parameters = connection.get_connection_params() | {"dbname": "postgres"}
    for django_only in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(django_only, None)
    with psycopg.connect(**parameters, autocommit=True) as admin:
        admin.execute(statement.encode())


def redis_client() -> "Redis":
    """A client of the tests' Redis."""
    from django.conf import settings
    from redis import Redis

    return Redis.from_url(settings.REDIS_URL)


@pytest.fixture
def empty_redis(services: None) -> None:
    """No message, lock or counter of an earlier test is left in Redis."""
    with redis_client() as redis:
        # Celery remembers that it declared its queues: without these keys it would publish to nobody.
        if keys := [key for key in redis.scan_iter() if not key.startswith(b"_kombu.binding.")]:
            redis.delete(*keys)


@dataclass(frozen=True)
class Hub:
    """A hub that answers HTTP. `url` has no slash at its end."""

    url: str
    database: ClonedDatabase


@pytest.fixture
def hub(cloned_database: ClonedDatabase) -> Iterator[Hub]:
    """The hub behind a real HTTP server in this process, one thread per connection, on the test's own database.

    Settings that the test overrides hold in the server too.
    """
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler

    from accelhub.handler import Handler as HubHandler

    class Server(ThreadedWSGIServer):
        daemon_threads = False  # closing waits for the last answer, and for its database connection

    class Handler(WSGIRequestHandler):
        protocol_version = "HTTP/1.0"  # no idle connections to wait for

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    server.set_app(HubHandler())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="hub")
    thread.start()
    try:
        yield Hub(f"http://127.0.0.1:{server.server_port}", cloned_database)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass(frozen=True)
class Worker:
    """A running Celery worker. `log` holds what it wrote."""

    process: "Popen[bytes]"
    log: Path


@pytest.fixture
def celery_worker_process(cloned_database: ClonedDatabase, tmp_path: Path) -> Iterator[Worker]:
    """A real worker process for both queues, on the test's own database. Ready when the test begins."""
    from accelhub import processes
    from accelhub.env import BASE_DIR

    log = tmp_path / "worker.log"
    command = "-m celery --app accelhub worker --pool=threads --concurrency=4 --queues=relay,heavy --loglevel=info"
    with log.open("wb") as output:
        process = processes.spawn(
            [sys.executable, *command.split(), "--without-gossip", "--without-mingle"],
            stdout=output,
            stderr=STDOUT,
            cwd=BASE_DIR,
            env=cloned_database.environment,
        )
    try:
        deadline = time.monotonic() + READY_SECONDS
        while not _answers_ping():
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"The worker did not start:\n{log.read_text()}", pytrace=False)
        yield Worker(process, log)
    finally:
        processes.stop(process, signal.SIGTERM, 20)


def _answers_ping() -> bool:
    from accelhub.celery import app

    return bool(app.control.ping(timeout=0.3, limit=1))
