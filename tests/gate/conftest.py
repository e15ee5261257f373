"""A field with a repository that blocks."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.gate.field import Field


@pytest.fixture
def gate_field(db: Any) -> "Field":
    """One repository at L4 and one at L3, main's last commits, and a pull request that left it there."""
    from tests.gate.field import Field

    return Field.make()
