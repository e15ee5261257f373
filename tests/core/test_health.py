"""`/healthz` and `/readyz`."""

from typing import Any

import pytest
import requests
from django.db import connection
from django.test import Client, RequestFactory

from accelhub.handler import Handler, Request
from tests.live import ClonedDatabase, Hub

NOWHERE = "unix:///nowhere/redis.sock"


def test_a_process_that_answers_is_healthy(client: Client) -> None:
    # No database in this test: nothing is asked.
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"ok": True})


def test_head_is_answered_like_get_without_a_body() -> None:
    def answer(method: str, path: str) -> tuple[int, dict[str, str], bytes]:
        environ = RequestFactory().generic(method, path).META
        response = Handler().get_response(Request(environ))
        return response.status_code, dict(response.items()), b"".join(response)

    for path, status in (("/healthz", 200), ("/github/callback/x", 404)):
        got = answer("GET", path)
        assert (got[0], len(got[2])) == (status, int(got[1]["Content-Length"]))
        assert answer("HEAD", path) == (*got[:2], b"")


@pytest.mark.django_db
def test_a_hub_with_all_its_parts_is_ready(client: Client) -> None:
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"ok": True, "failing": [], "overdue": []})


@pytest.mark.django_db
@pytest.mark.parametrize("url", [NOWHERE, "redis://127.0.0.1:1/0"])
def test_without_redis_it_is_not_ready(client: Client, settings: Any, url: str) -> None:
    settings.REDIS_URL = url
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (503, {"ok": False, "failing": ["redis"], "overdue": []})


@pytest.mark.parametrize(
    ("redis", "failing"), [(None, ["postgresql"]), (NOWHERE, ["postgresql", "redis"])], ids=["with redis", "nothing"]
)
def test_without_postgresql_it_is_not_ready(
    cloned_database: ClonedDatabase,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
    redis: str | None,
    failing: list[str],
) -> None:
    settings.REDIS_URL = redis or settings.REDIS_URL
    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "HOST", "/nowhere")
        answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (503, {"ok": False, "failing": failing, "overdue": []})


def test_a_hub_that_lost_postgresql_for_a_moment_is_ready_again(hub: Hub) -> None:
    from tests.live import administer

    def ready() -> tuple[int, Any]:
        answer = requests.get(f"{hub.url}/readyz", timeout=10)
        return answer.status_code, answer.json()

    assert ready() == (200, {"ok": True, "failing": [], "overdue": []})
    name = hub.database.name
    administer(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")  # noqa: S608
    assert ready() == (200, {"ok": True, "failing": [], "overdue": []})
