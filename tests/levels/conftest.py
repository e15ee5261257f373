"""An upstream whose file decides, for the tests that ask for it."""

from tests.factories.upstream import upstream

__all__ = ["upstream"]
