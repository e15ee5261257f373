"""A folder of reports, a server that records, the client between them; and what a real hub needs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.recorder import JUNIT, Client, Recorder, client_in
from tests.relay.conftest import downstream, github, oidc_key
from tests.results.conftest import storage_folder

__all__ = ["downstream", "github", "oidc_key", "storage_folder"]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def step(tmp_path: Path) -> Path:
    """Where the CI step works: with one report in it."""
    folder = tmp_path / "step"
    report = folder / "test-reports" / "python-pytest" / "test_ops" / "a.xml"
    report.parent.mkdir(parents=True)
    report.write_text(JUNIT)
    return folder


@pytest.fixture
def cli(step: Path, recorder: Recorder) -> Client:
    return client_in(step, recorder.url)
