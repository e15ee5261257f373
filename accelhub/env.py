"""Everything the hub reads from the environment, in one place.

Names are a contract with operators (docs/operator.md prints them). Every variable may also be given as
`NAME_FILE`, a path whose content is the value: the form container secrets take.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import environ

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.FileAwareEnv()


@dataclass(frozen=True)
class Paths:
    """Where one hub keeps its files.

    `data` survives; `runtime` holds sockets and is rebuilt at every start. A Unix socket's path is limited to
    107 bytes, so the runtime folder is short however deep the data folder lies, and two data folders never share one.
    """

    data: Path

    @property
    def runtime(self) -> Path:
        digest = hashlib.sha256(str(self.data).encode()).hexdigest()[:8]
        return Path(f"/tmp/accelhub-{os.geteuid()}-{digest}")  # noqa: S108  made 0700, its owner checked

    @property
    def postgres_socket_dir(self) -> Path:
        return self.runtime / "pg"

    @property
    def redis_socket(self) -> Path:
        return self.runtime / "redis.sock"


def paths() -> Paths:
    return Paths(data=Path(env.str("ACCELHUB_DATA_DIR", str(BASE_DIR / "var"))).resolve())


def redis_url() -> str:
    """The Redis address in redis-py's spelling: REDIS_URL, else the embedded server's socket."""
    return env.str("REDIS_URL", "") or f"unix://{paths().redis_socket}"


def broker_url() -> str:
    """The same Redis in Celery's spelling, which calls a socket address `redis+socket`."""
    url = redis_url()
    return "redis+socket" + url.removeprefix("unix") if url.startswith("unix://") else url


def database() -> dict:
    """Django's DATABASES entry: DATABASE_URL, else the embedded server's socket."""
    if env.str("DATABASE_URL", ""):
        return env.db_url("DATABASE_URL")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "accelhub",
        "USER": "accelhub",
        "HOST": str(paths().postgres_socket_dir),
        "PORT": "5432",  # part of the socket's name; said here so that no PGPORT of the shell decides it
    }


def mail() -> dict:
    """Django's EMAIL_* settings: EMAIL_URL, else a file per e-mail in the data folder."""
    if env.str("EMAIL_URL", ""):
        return env.email_url("EMAIL_URL")
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.filebased.EmailBackend",
        "EMAIL_FILE_PATH": str(paths().data / "mail"),
    }


def is_loopback(host: str | None) -> bool:
    return host in {"localhost", "127.0.0.1", "::1"}
