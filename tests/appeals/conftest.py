"""What tests of appeals stand on."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.appeals.field import Field


@pytest.fixture
def field(db: None) -> "Field":
    from tests.appeals.field import Field

    return Field.make()
