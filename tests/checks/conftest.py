"""A hub, a GitHub, and a repository at any level. Models are imported inside: this loads before settings may."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.test import Client

from apps.simulator.standin import GitHubStandIn
from tests.relay.conftest import downstream, github, oidc_key
from tests.relay.downstream import Downstream

if TYPE_CHECKING:
    from tests.checks.field import Upstream

__all__ = ["downstream", "github", "oidc_key"]


@pytest.fixture
def upstream(github: GitHubStandIn, client: Client, downstream: Callable[..., Downstream], db: None) -> "Upstream":
    from tests.checks.field import Upstream

    github.add_repository(settings.UPSTREAM_REPO)
    return Upstream(github, client, downstream)


@pytest.fixture
def at_level(upstream: "Upstream") -> Callable[[int], Downstream]:
    """Lists Kestrel at a level (device npu): its run, whose jobs answer."""
    from apps.platforms.models import Repository
    from tests.checks.field import KESTREL
    from tests.factories.listing import listed

    def make(level: int) -> Downstream:
        made = upstream.make(KESTREL)
        listed({KESTREL: level})
        Repository.objects.filter(full_name=KESTREL).update(device="npu")
        return made

    return make
