"""A folder of reports, a server that records, and the client between them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.recorder import JUNIT, Client, Recorder, client_in


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
