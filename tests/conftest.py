"""How every test runs: which environment, which servers, which databases.

A test that touches the database asks for one of two things:

- `db` (or `@pytest.mark.django_db`): one transaction, rolled back at the end. Fast; nothing is ever committed.
- `cloned_database`: a database of its own, copied from the migrated one, dropped afterwards. For everything that
  commits, uses several connections or threads, or talks to other processes. `hub` (a real HTTP server) and
  `celery_worker_process` (a real worker) stand on it; see tests/live.py.

`make test` runs several processes (`-n auto`), each with its own data folder, PostgreSQL and Redis. Servers that are
named are not shared: with DATABASE_URL or REDIS_URL set there is one process.

pytest-django's `transactional_db` and `live_server` are refused: they empty tables with TRUNCATE, which the audit log
forbids by trigger.
"""

import os
import shutil
from collections.abc import Iterator

import hypothesis
import pytest
from pytest_django import DjangoDbBlocker

from tests import environment
from tests.live import (
    celery_worker_process,
    cloned_database,
    empty_redis,
    hub,
    refuse_flushing,
)

__all__ = ["celery_worker_process", "cloned_database", "empty_redis", "hub"]

_DATA = environment.prepare()
# How long an example takes says how busy the machine is, nothing about the code.
hypothesis.settings.register_profile("accelhub", deadline=None)
hypothesis.settings.load_profile("accelhub")


def pytest_configure(config: pytest.Config) -> None:
    """Load settings and apps, with what only tests need different."""
    if config.getoption("dist", "no") != "no":
        # This process only hands tests out. What it starts must find no settings named, as it did not.
        del os.environ["DJANGO_SETTINGS_MODULE"]
        return
    import django
    from django.conf import settings

    if settings.configured:
        raise pytest.UsageError("Settings were loaded before tests/conftest.py: unset DJANGO_SETTINGS_MODULE.")
    # Without a manifest pages render although collectstatic never ran.
    settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
    # Deliberately weak: a test that signs in would otherwise spend its time hashing.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    django.setup()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """How many processes `-n auto` means: 0 is none beside this one, None is one for each core."""
    return 0 if environment.KEPT & set(os.environ) else None


def pytest_unconfigure(config: pytest.Config) -> None:
    from accelhub.env import Paths

    shutil.rmtree(Paths(_DATA).runtime, ignore_errors=True)
    shutil.rmtree(_DATA, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    refuse_flushing(item)


@pytest.fixture(scope="session")
def services() -> Iterator[None]:
    """PostgreSQL and Redis for this run: the ones that DATABASE_URL and REDIS_URL name, else our own."""
    from accelhub.embedded import EmbeddedError, FolderLock, Services, wanted_services
    from accelhub.env import Paths, env
    from tests.live import redis_client

    where = Paths(_DATA)
    try:
        with FolderLock(where), Services(where, wanted_services(where, durable=False)):
            if env.str("REDIS_URL", ""):
                with redis_client() as redis:
                    if redis.dbsize():
                        pytest.exit("REDIS_URL's database holds keys, and tests empty theirs: name an empty one.", 1)
            yield
            with redis_client() as redis:
                redis.flushdb()
    except EmbeddedError as error:
        pytest.exit(error.message, returncode=1)


@pytest.fixture(scope="session")
def django_db_setup(
    services: None, django_test_environment: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """The migrated test database: where `db` tests run, and the template of `cloned_database`."""
    from django.test.utils import setup_databases, teardown_databases

    with django_db_blocker.unblock():
        created = setup_databases(verbosity=0, interactive=False, aliases={"default": []}, serialized_aliases=[])
    yield
    with django_db_blocker.unblock():
        teardown_databases(created, verbosity=0)
