"""A stand-in for GitHub that the hub trusts, and a downstream's side of the protocol."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client, override_settings

from apps.core import github as core_github
from apps.relay import identity
from apps.simulator.oidc import new_key
from apps.simulator.standin import GitHubStandIn
from tests.relay.downstream import Downstream


@pytest.fixture(scope="session")
def oidc_key() -> str:
    return new_key()


@pytest.fixture
def github(oidc_key: str) -> Iterator[GitHubStandIn]:
    """A GitHub of the test's own; the hub's settings point at it."""
    standin = GitHubStandIn(
        app_id=settings.GITHUB_APP_ID, app_private_key=settings.GITHUB_APP_PRIVATE_KEY, oidc_private_key=oidc_key
    )
    with standin, override_settings(GITHUB_API_URL=standin.url, OIDC_ISSUERS=standin.issuers):
        identity.forget_keys()
        core_github.client.cache_clear()
        yield standin
    identity.forget_keys()
    core_github.client.cache_clear()


_runs = itertools.count(70_001)


@pytest.fixture
def downstream(github: GitHubStandIn, client: Client, empty_redis: None) -> Callable[..., Downstream]:
    """Makes downstream repositories that exist on GitHub: `downstream("kestrel-demo/torch-kestrel")`."""

    def make(full_name: str, **ids: Any) -> Downstream:
        github.add_repository(full_name, **ids)
        return Downstream(full_name, github, client, str(next(_runs)))

    return make
