"""A downstream that speaks the protocol, for tests that begin at the front door; a storage of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from tests.relay.conftest import downstream, github, oidc_key

__all__ = ["downstream", "github", "oidc_key", "storage_folder"]


@pytest.fixture
def storage_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where reports are stored for the length of the test; workers are told by `ACCELHUB_STORAGE_URL`."""
    from django.conf import settings

    folder = tmp_path / "files"
    monkeypatch.setenv("ACCELHUB_STORAGE_URL", f"file://{folder}")
    options = settings.STORAGES["default"]["OPTIONS"] | {"location": str(folder)}
    changed = settings.STORAGES | {"default": settings.STORAGES["default"] | {"OPTIONS": options}}
    with override_settings(STORAGES=changed, INCOMING_DIR=tmp_path / "incoming"):
        yield folder
