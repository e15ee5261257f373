"""A stand-in for GitHub with the hub's client before it, and a tiny hub behind it."""

from collections.abc import Iterator

import pytest

from apps.core.github import GitHubClient
from apps.simulator.oidc import new_key
from apps.simulator.standin import GitHubStandIn
from tests.simulator.tiny_hub import APP_ID, TinyHub


@pytest.fixture(scope="session")
def app_key() -> str:
    return new_key()


@pytest.fixture(scope="session")
def oidc_key() -> str:
    return new_key()


@pytest.fixture
def github(app_key: str, oidc_key: str) -> Iterator[GitHubStandIn]:
    with GitHubStandIn(app_id=APP_ID, app_private_key=app_key, oidc_private_key=oidc_key) as standin:
        yield standin


@pytest.fixture
def client(github: GitHubStandIn, app_key: str) -> GitHubClient:
    return GitHubClient(api_url=github.url, app_id=APP_ID, private_key=app_key)


@pytest.fixture
def tiny_hub(github: GitHubStandIn, app_key: str) -> Iterator[TinyHub]:
    hub = TinyHub(github_url=github.url, app_key=app_key)
    yield hub
    hub.stop()
