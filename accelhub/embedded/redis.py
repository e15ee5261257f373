"""The embedded Redis: one socket, no network, nothing on disk. What it holds, PostgreSQL can rebuild."""

import signal
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelhub.embedded.binaries import redis_server
from accelhub.embedded.folders import make_runtime_folder
from accelhub.env import Paths


@dataclass
class RedisServer:
    """One server for one data folder."""

    paths: Paths

    name = "redis"
    stop_signal = signal.SIGTERM
    # Not SIGTERM: a server that stops in its own time would remove the socket of its successor.
    death_signal = signal.SIGKILL
    stop_seconds = 5.0

    @property
    def folder(self) -> Path:
        return self.paths.data / "redis"

    def prepare(self) -> None:
        """Make its folders. Raises EmbeddedError."""
        make_runtime_folder(self.paths.runtime)
        self.folder.mkdir(mode=0o700, exist_ok=True)

    def argv(self) -> list[str]:
        """The command that runs the server in the foreground."""
        settings = {
            "port": "0",
            "unixsocket": str(self.paths.redis_socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "appendonly": "no",
            "save": "",
            "daemonize": "no",
            "loglevel": "warning",
        }
        return [redis_server(), *(word for name, value in settings.items() for word in (f"--{name}", value))]

    def options(self) -> dict[str, Any]:
        """What Popen needs besides argv."""
        return {"cwd": "/"}

    def answers(self) -> bool:
        """Whether the server answers PING now."""
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(2)
                connection.connect(str(self.paths.redis_socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False
