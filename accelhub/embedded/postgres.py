"""The embedded PostgreSQL: a cluster in the data folder, one socket, no network."""

import contextlib
import functools
import os
import pwd
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelhub import processes
from accelhub.embedded.binaries import postgres_bin, postgres_major_version
from accelhub.embedded.folders import EmbeddedError, make_data_folder, make_runtime_folder
from accelhub.env import Paths

USER = "accelhub"
DATABASE = "accelhub"
# A server of a hub that was killed gets this long (seconds) to write its last checkpoint.
_PREDECESSOR_SECONDS = 30
_UNMAPPED_UID = "65534"


@dataclass(frozen=True)
class Identity:
    """As whom the server runs. `prefix` goes before its argv, `options` to Popen; its files belong to `uid`."""

    uid: int
    prefix: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Postgres:
    """One server on one data folder. `durable=False` gives up crash safety for speed: for tests."""

    paths: Paths
    durable: bool = True

    name = "postgres"
    # SIGINT ends sessions and writes a checkpoint; SIGTERM would wait for idle clients.
    stop_signal = signal.SIGINT
    death_signal = signal.SIGINT
    stop_seconds = 30.0

    @property
    def folder(self) -> Path:
        return self.paths.data / "postgres"

    def prepare(self) -> None:
        """Make the database cluster on first use, and see that nothing prevents a start. Raises EmbeddedError."""
        try:
            self._prepare()
        except OSError as error:
            raise EmbeddedError(
                f"{error.filename or self.folder} cannot be used ({error.strerror}): start as the user it belongs to, "
                "or set ACCELHUB_DATA_DIR to another folder."
            ) from error

    def _prepare(self) -> None:
        identity = self._identity
        make_runtime_folder(self.paths.runtime)
        if identity.uid != os.geteuid():
            self.paths.runtime.chmod(0o711)  # the server's user passes through to its own, closed folder
        self.paths.postgres_socket_dir.mkdir(mode=0o700, exist_ok=True)
        if not self.folder.exists() or not any(self.folder.iterdir()):
            self._initialise()
        self._check_version()
        self._await_predecessor()
        for folder in (self.folder, self.paths.postgres_socket_dir):
            _give(folder, identity.uid)

    def argv(self) -> list[str]:
        """The command that runs the server in the foreground."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.paths.postgres_socket_dir),
            "unix_socket_permissions": "0700",
            "port": "5432",
            # The server's own events and failures; a refused statement is told by whoever sent it.
            "log_min_messages": "log",
            "log_checkpoints": "off",
            "log_line_prefix": "",
        }
        if not self.durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [*self._identity.prefix, str(postgres_bin() / "postgres"), "-D", str(self.folder), *options]

    def options(self) -> dict[str, Any]:
        """What Popen needs besides argv."""
        return {"env": _environment(), "cwd": "/", **self._identity.options}

    def answers(self) -> bool:
        """Whether the server accepts a connection to our database now."""
        import psycopg

        # While it recovers, the server notes each refused connection in its log: look at its own word first.
        if not _says_ready(self.folder / "postmaster.pid"):
            return False
        try:
            psycopg.connect(
                host=str(self.paths.postgres_socket_dir), port=5432, user=USER, dbname=DATABASE, connect_timeout=2
            ).close()
        except psycopg.OperationalError:
            return False
        return True

    @functools.cached_property
    def _identity(self) -> Identity:
        make_data_folder(self.paths.data)
        return _choose_identity(self.paths.data)

    def _initialise(self) -> None:
        """Make a complete cluster, our database included, beside its final place, then rename it.

        An interruption leaves at most a draft, which the next start removes.
        """
        for draft in self.paths.data.glob("postgres.new-*"):
            # What cannot go now (its initdb is just dying) goes next time.
            shutil.rmtree(draft, ignore_errors=True)
        draft = self.paths.data / f"postgres.new-{os.getpid()}"
        draft.mkdir(mode=0o700)
        _give(draft, self._identity.uid)
        self._run(
            "initdb",
            *("--pgdata", str(draft), "--username", USER, "--auth-local=trust", "--auth-host=reject"),
            # The same order on every machine: the C library's locales differ between hosts.
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--encoding=UTF8", "--no-instructions"),
            *([] if self.durable else ["--no-sync"]),
        )
        self._run(
            *("postgres", "--single", "-D", str(draft), "-c", "exit_on_error=on", "-c", "log_min_messages=error"),
            *([] if self.durable else ["-c", "fsync=off"]),
            "postgres",
            stdin=f"CREATE DATABASE {DATABASE}\n",
        )
        draft.rename(self.folder)

    def _run(self, program: str, *arguments: str, stdin: str = "") -> None:
        done = processes.run(
            [*self._identity.prefix, str(postgres_bin() / program), *arguments], stdin=stdin, **self.options()
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise EmbeddedError(
                f"PostgreSQL's {program} failed in {self.paths.data} ({last}): "
                "make room there, or set ACCELHUB_DATA_DIR or DATABASE_URL."
            )

    def _check_version(self) -> None:
        try:
            found = (self.folder / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise EmbeddedError(
                f"{self.folder} is not a whole PostgreSQL data folder (it has no PG_VERSION): "
                "move it away and start again, or set ACCELHUB_DATA_DIR."
            ) from None
        if found != postgres_major_version():
            raise EmbeddedError(
                f"{self.folder} was made by PostgreSQL {found}, this hub brings {postgres_major_version()}: move the "
                f"data over with pg_dump of PostgreSQL {found}, or set ACCELHUB_DATA_DIR to another folder."
            )

    def _await_predecessor(self) -> None:
        """Wait until the server of a killed hub has gone; clear the pid file of a machine that went down.

        We hold the data folder's lock, so a server that still runs here has lost its hub and is stopping.
        """
        file = self.folder / "postmaster.pid"
        deadline = time.monotonic() + _PREDECESSOR_SECONDS
        while (pid := _first_number(file)) and Path(f"/proc/{pid}").exists():
            command = _command_line(pid)
            if "postgres" not in command or str(self.folder) not in command:
                # Another program got this number since: PostgreSQL would take it for a server and never start.
                file.unlink(missing_ok=True)
                return
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"PostgreSQL (pid {pid}) still runs on {self.folder}: stop it with `kill -INT {pid}`, then start "
                    "again."
                )
            time.sleep(0.05)


def _choose_identity(data: Path) -> Identity:
    """PostgreSQL refuses to run as root: find another identity that can reach the binaries and the data folder.

    First choice for root is a user namespace in which root has another number: the kernel still treats it as root, so
    files stay root's and every folder can be reached. Where namespaces are forbidden (containers), it is `nobody`,
    who needs open folders above. Raises EmbeddedError.
    """
    postgres = str(postgres_bin() / "postgres")
    if os.geteuid() != 0:
        return Identity(uid=os.geteuid())
    if unshare := shutil.which("unshare"):
        renamed = Identity(uid=0, prefix=(unshare, "--user", f"--map-user={_UNMAPPED_UID}"))
        if _works(renamed, [postgres, "--version"]):
            return renamed
    with contextlib.suppress(KeyError):
        user = pwd.getpwnam("nobody")
        nobody = Identity(uid=user.pw_uid, options={"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []})
        data.chmod(data.stat().st_mode | 0o011)
        if _works(nobody, ["/bin/sh", "-c", 'cd -- "$1" && exec "$2" --version', "sh", str(data), postgres]):
            return nobody
    raise EmbeddedError(
        f"PostgreSQL does not run as root, and no other user can reach {data}: start as an ordinary user, set "
        "ACCELHUB_DATA_DIR to a folder below an open one, or set DATABASE_URL."
    )


def _works(identity: Identity, command: list[str]) -> bool:
    try:
        done = processes.run([*identity.prefix, *command], cwd="/", **identity.options)
    except OSError:
        return False
    return done.returncode == 0


def _give(folder: Path, uid: int) -> None:
    """Make a tree belong to `uid`. Only root meets one that does not: the way to run PostgreSQL may change."""
    if os.geteuid() == 0 and folder.stat().st_uid != uid:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, uid, -1, follow_symlinks=False)


def _says_ready(pid_file: Path) -> bool:
    try:
        return pid_file.read_text().rstrip().endswith("ready")
    except OSError:
        return False


def _environment() -> dict[str, str]:
    """Ours without PG…: the server too would read PGPORT and others. Messages in English, for the log."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}


def _first_number(file: Path) -> int | None:
    try:
        return int(file.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
