"""A downstream that speaks the protocol, for tests that begin at the front door; a storage of the test's own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from tests.live import ClonedDatabase
from tests.relay.conftest import downstream, github, oidc_key
from tests.relay.downstream import Downstream

__all__ = ["downstream", "github", "oidc_key", "storage_folder"]

Reporting = Callable[..., dict[str, Downstream]]


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


@pytest.fixture
def reporting(
    cloned_database: ClonedDatabase, storage_folder: Path, downstream: Callable[..., Downstream]
) -> Reporting:
    """Repositories at their levels that report in a database where everything commits: `reporting({"a/torch": 2})`.

    Each has the device `npu`, as a raise to L3 leaves it."""
    from apps.platforms.models import Repository
    from tests.factories.listing import listed

    def make(levels: dict[str, int]) -> dict[str, Downstream]:
        made = {name: downstream(name) for name in levels}
        listed(dict(levels))
        Repository.objects.update(device="npu")
        return made

    return make
