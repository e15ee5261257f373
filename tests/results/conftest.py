"""A downstream that speaks the protocol, for tests that begin at the front door."""

from tests.relay.conftest import downstream, github, oidc_key

__all__ = ["downstream", "github", "oidc_key"]
