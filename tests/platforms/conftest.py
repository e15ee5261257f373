"""People who come through GitHub."""

import pytest

from tests.factories.upstream import upstream
from tests.live import Hub
from tests.sign_in import Browser, github

__all__ = ["github", "upstream"]


@pytest.fixture
def browser(hub: Hub) -> Browser:
    return Browser(hub)
