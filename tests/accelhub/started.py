"""A hub under supervision, started by a test as a process of its own, with its output at hand."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

from tests.accelhub.process_tree import PATIENCE, descendants, eventually, living, marked
from tests.environment import without_ours

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class Started:
    """One started hub. `environment` adds to one in which nothing else configures a hub."""

    def __init__(self, arguments: Sequence[str], data: Path, **environment: str) -> None:
        self.mark = uuid.uuid4().hex
        self.port = int(environment.get("PORT") or free_port())
        self._out = tempfile.TemporaryFile()  # noqa: SIM115  closed in `close`
        self._err = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            stdout=self._out,
            stderr=self._err,
            start_new_session=True,
            env=without_ours(os.environ)
            | {"ACCELHUB_DATA_DIR": str(data), "PORT": str(self.port), "HUB_UNDER_TEST": self.mark}
            | environment,
        )

    @property
    def out(self) -> str:
        return os.pread(self._out.fileno(), 10_000_000, 0).decode()

    @property
    def err(self) -> str:
        return os.pread(self._err.fileno(), 10_000_000, 0).decode()

    def writes(self, text: str) -> None:
        """Wait until the output holds `text`."""
        eventually(lambda: text in self.out or self.process.poll() is not None, f"{text!r} in\n{self.out}")
        assert text in self.out, self.out + self.err

    def ends(self) -> int:
        """Wait for the end. Returns the exit status."""
        return self.process.wait(PATIENCE)

    def below(self) -> set[int]:
        """Every process that the hub started, and those that these started."""
        return (descendants(self.process.pid) | marked(self.mark)) - {self.process.pid}

    def tree(self) -> set[int]:
        """The hub's own process and all below."""
        return {self.process.pid} | self.below()

    def close(self) -> None:
        """End whatever is left, so that a failing test leaves nothing behind."""
        left = self.tree() if self.process.poll() is None else marked(self.mark)
        for pid in living(left):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self._out.close()
        self._err.close()
