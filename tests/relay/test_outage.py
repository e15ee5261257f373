"""PostgreSQL goes away in the middle of a run, and comes back: the identical callback then lands."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import close_old_connections, connection, connections
from django.test import Client
from pytest_django import DjangoDbBlocker

from accelhub.embedded import Services
from accelhub.embedded.postgres import DATABASE, USER, Postgres
from accelhub.env import Paths
from apps.relay.models import Callback, Job, Rejection
from tests.factories.listing import listed
from tests.relay.downstream import Downstream, answer, refusal
from tests.relay.test_callback import APPLIED, DUPLICATE, KESTREL, dispatch


@pytest.fixture
def postgresql(django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path: Path) -> Iterator[Services]:
    """A PostgreSQL of the test's own, migrated, which may be stopped and started. Django's connection points at it."""
    where = Paths(tmp_path / "data")
    server = Services(where, [Postgres(where, durable=False)])
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        connections.close_all()
        place = {"HOST": str(where.postgres_socket_dir), "PORT": "5432", "NAME": DATABASE, "USER": USER, "PASSWORD": ""}
        for name, value in place.items():
            patch.setitem(connection.settings_dict, name, value)
        try:
            server.start()
            call_command("migrate", verbosity=0, skip_checks=True)
            yield server
        finally:
            connections.close_all()
            server.stop()
            shutil.rmtree(where.runtime, ignore_errors=True)


def test_the_identical_callback_lands_once_postgresql_is_back(
    postgresql: Services, downstream: Callable[..., Downstream], client: Client
) -> None:
    kestrel = downstream(KESTREL, repository_id=5001, owner_id=6001)
    listed({KESTREL: 2})
    dispatch(client)
    assert answer(kestrel.start()) == APPLIED
    body, token = kestrel.body(conclusion="success"), kestrel.token()
    postgresql.stop()
    for _ in range(2):
        response = kestrel.post(body, token=token)
        close_old_connections()  # what a server does after each request, and the test's client does not
        assert refusal(response) == (503, "unavailable", None)
        assert response.headers["Retry-After"] == "5"
    # What would be refused cannot be counted now, and is no 500 either.
    assert refusal(kestrel.post(body, token="x.y.z")) == (503, "unavailable", None)
    close_old_connections()
    postgresql.start()
    assert answer(kestrel.post(body, token=token)) == APPLIED
    assert answer(kestrel.post(body, token=token)) == DUPLICATE
    assert list(Job.objects.values_list("status", "conclusion", "flags")) == [("completed", "success", [])]
    assert (Callback.objects.count(), Rejection.objects.count()) == (2, 0)
