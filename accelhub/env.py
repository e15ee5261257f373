"""Everything the hub reads from the environment, in one place.

Names are a contract with operators (docs/operator.md prints them). Every variable may also be given as
`NAME_FILE`, a path whose content is the value: the form container secrets take.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent


class SettingError(ImproperlyConfigured):
    """A variable that cannot be read: one line with its name, what was seen, and what to write."""


# What to write, by the reader that a value did not suit.
_WRITE: dict[Any, str] = {
    int: "a whole number",
    json.loads: 'JSON, such as [{"issuer": "https://…", "jwks_url": "https://…", "kind": "github"}]',
}


class HubEnv(environ.FileAwareEnv):
    """The environment, with errors for whoever wrote it."""

    def get_value(self, var: str, cast: Any = None, default: Any = environ.Env.NOTSET, **options: Any) -> Any:
        """The variable's value, read by `cast`. Raises SettingError."""
        try:
            return super().get_value(var, cast=cast, default=default, **options)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
            raise SettingError(
                f"{var}_FILE names {os.environ[var + '_FILE']}, which cannot be read ({reason}): name a readable file."
            ) from error
        except ValueError as error:
            raise SettingError(f"{var} is {self.str(var)!r}: write {_WRITE[cast]}.") from error


env = HubEnv()


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
    """The Redis address in redis-py's spelling: REDIS_URL, else the embedded server's socket. Raises SettingError."""
    url = env.str("REDIS_URL", "")
    if not url:
        return f"unix://{paths().redis_socket}"
    _refuse_scheme("REDIS_URL", url, ("redis", "rediss", "unix"), "redis://host:6379/0")
    return url


def broker_url() -> str:
    """The same Redis in Celery's spelling, which calls a socket address `redis+socket`."""
    url = redis_url()
    return "redis+socket" + url.removeprefix("unix") if url.startswith("unix://") else url


_POSTGRES = "postgres://user:password@host:5432/name"


def database() -> dict:
    """Django's DATABASES entry: DATABASE_URL, else the embedded server's socket. Raises SettingError."""
    if url := env.str("DATABASE_URL", ""):
        _refuse_scheme("DATABASE_URL", url, ("postgres", "postgresql", "psql", "pgsql"), _POSTGRES)
        return _parsed("DATABASE_URL", env.db_url_config, url, _POSTGRES)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "accelhub",
        "USER": "accelhub",
        "HOST": str(paths().postgres_socket_dir),
        "PORT": "5432",  # part of the socket's name; said here so that no PGPORT of the shell decides it
    }


_SMTP = "smtp+tls://user:password@host:587"


def mail() -> dict:
    """Django's EMAIL_* settings: EMAIL_URL, else a file per e-mail in the data folder. Raises SettingError."""
    if url := env.str("EMAIL_URL", ""):
        _refuse_scheme("EMAIL_URL", url, tuple(env.EMAIL_SCHEMES), _SMTP)
        return _parsed("EMAIL_URL", env.email_url_config, url, _SMTP)
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.filebased.EmailBackend",
        "EMAIL_FILE_PATH": str(paths().data / "mail"),
    }


def storage(data: Path) -> dict[str, Any]:
    """Django's entry of STORAGES for reports: files in the data folder, or in the one that ACCELHUB_STORAGE_URL names
    as `file:///…`. Any other scheme is refused by a system check (accelhub.E024), and files are used meanwhile."""
    url = urlsplit(storage_url())
    folder = Path(unquote(url.path)) if url.scheme == "file" and not url.netloc and url.path else data / "files"
    private = {"file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
    return {
        "BACKEND": "apps.core.storage.DurableFiles",
        "OPTIONS": {"location": str(folder), "allow_overwrite": True, **private},
    }


def storage_url() -> str:
    """Where reports are stored; '' is the data folder."""
    return env.str("ACCELHUB_STORAGE_URL", "")


def _refuse_scheme(name: str, url: str, known: tuple[str, ...], example: str) -> None:
    # Only the scheme is shown: what follows it holds passwords.
    scheme, colon, _ = url.partition(":")
    if not colon or scheme not in known:
        seen = f"begins with {scheme!r}" if colon else "has no scheme"
        raise SettingError(f"{name} {seen}: write an address such as {example}.")


def _parsed(name: str, parse: Any, url: str, example: str) -> dict:
    try:
        return parse(url)
    except ValueError as error:
        raise SettingError(f"{name} cannot be read as an address: write one such as {example}.") from error


def is_loopback(host: str | None) -> bool:
    return host in {"localhost", "127.0.0.1", "::1"}
