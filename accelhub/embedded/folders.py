"""The folders of one hub: who may hold the data folder, and a runtime folder that nobody else can enter."""

import fcntl
import os
import stat
from pathlib import Path
from types import TracebackType

from accelhub.demo import FILE as DEMO_FILE
from accelhub.env import Paths
from apps.core.enums import Kind

LOCK_FILE = "hub.lock"
KIND_FILE = "kind"


class EmbeddedError(Exception):
    """Why the hub cannot start here. `message` is one line for whoever started it: what was seen, what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class FolderLock:
    """The one lock of a data folder. Whoever holds it may start services there; the kernel frees it at their death."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self._descriptor: int | None = None

    def try_acquire(self) -> bool:
        """Make the data folder if need be, and take its lock. False when another process holds it.

        Raises EmbeddedError when the folder cannot be made or written.
        """
        make_data_folder(self.paths.data)
        file = self.paths.data / LOCK_FILE
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise _unusable(self.paths.data, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # `make demo-reset` may have removed the file between our open and our lock: such a lock guards nothing.
            if not os.path.samestat(os.fstat(descriptor), file.stat()):
                raise FileNotFoundError
        except (BlockingIOError, FileNotFoundError):
            os.close(descriptor)
            return False
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor
        return True

    def acquire(self) -> None:
        """Take the lock. Raises EmbeddedError, naming the holder, when another process has it."""
        if not self.try_acquire():
            raise EmbeddedError(
                f"Another hub (pid {self.holder()}) already runs on {self.paths.data}. "
                "Stop it, or set ACCELHUB_DATA_DIR."
            )

    def holder(self) -> str:
        """The pid that the holder wrote, or `unknown` in the instant before it wrote it."""
        try:
            return (self.paths.data / LOCK_FILE).read_text().strip() or "unknown"
        except OSError:
            return "unknown"

    def release(self) -> None:
        """Give the lock back. Does nothing when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> "FolderLock":
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def make_data_folder(folder: Path) -> None:
    """Make the data folder, closed to others. One that exists keeps its mode. Raises EmbeddedError."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from error


def kind_of(is_demo: bool) -> Kind:
    """The kind of a hub with or without ACCELHUB_DEMO.

    A demo has accounts whose passwords everyone knows, and demo-reset removes it whole; a real hub shows what it holds
    as true. So each folder and each database is one of the two from its first start on.
    """
    return Kind.DEMO if is_demo else Kind.REAL


def kind_of_folder(folder: Path) -> Kind | None:
    """What the folder was first used for; None for a new one. Folders of before the file show it by what they hold."""
    if (folder / KIND_FILE).exists():
        return Kind((folder / KIND_FILE).read_text().strip())
    if (folder / DEMO_FILE).exists():
        return Kind.DEMO
    return Kind.REAL if (folder / "postgres").exists() else None


def claim_folder(folder: Path, wanted: Kind) -> None:
    """See that the folder is of this kind, and keep it so. Raises EmbeddedError. Call under the folder's lock."""
    found = kind_of_folder(folder)
    if found not in (None, wanted):
        raise EmbeddedError(refusal(f"The data folder {folder}", found, wanted, "ACCELHUB_DATA_DIR to another folder"))
    (folder / KIND_FILE).write_text(f"{wanted.value}\n")


def claim_new_folder(folder: Path, wanted: Kind) -> None:
    """Keep a folder that nobody used yet for this kind. Call under the folder's lock."""
    if kind_of_folder(folder) is None:
        claim_folder(folder, wanted)


def refusal(what: str, found: Kind | None, wanted: Kind, remedy: str) -> str:
    """Why a hub of kind `wanted` does not start on `what`, in one line with the way out."""
    assert found is not None
    switch = "unset ACCELHUB_DEMO" if wanted is Kind.DEMO else "set ACCELHUB_DEMO=1"
    return f"{what} is kept by {found.label}, and this is {wanted.label}: set {remedy}, or {switch}."


def make_runtime_folder(folder: Path) -> None:
    """Make the folder of the sockets, or accept the one of an earlier start.

    It lies in /tmp, where anyone may have made it first: a symlink or a folder of somebody else's is refused, for
    whoever owns it could put a server of theirs in ours' place. Raises EmbeddedError.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        pass  # a file or a dangling symlink: refused below
    except OSError as error:
        raise _unusable(folder, error) from error
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        kind = "is not a folder" if not stat.S_ISDIR(found.st_mode) else f"belongs to uid {found.st_uid}"
        raise EmbeddedError(f"{folder} {kind}: remove it, or set ACCELHUB_DATA_DIR to another folder.")
    if found.st_mode & 0o066:
        folder.chmod(0o700)


def _unusable(folder: Path, error: OSError) -> EmbeddedError:
    return EmbeddedError(
        f"The folder {folder} cannot be used ({error.strerror}): make it writable for this user, "
        "or set ACCELHUB_DATA_DIR to another folder."
    )
