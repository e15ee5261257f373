"""People who come through GitHub."""

import pytest

from tests.live import Hub
from tests.sign_in import Browser, github

__all__ = ["github"]


@pytest.fixture
def browser(hub: Hub) -> Browser:
    return Browser(hub)
