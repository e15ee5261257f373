"""Reports that are read for real need a folder of their own, and somebody who sends them."""

from tests.relay.conftest import downstream, github, oidc_key
from tests.results.conftest import reporting, storage_folder

__all__ = ["downstream", "github", "oidc_key", "reporting", "storage_folder"]
