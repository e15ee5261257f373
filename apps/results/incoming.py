"""How the files of an upload come in: hashed and written to disk as they are read, never whole in memory."""

import datetime
import hashlib
import os
import tempfile
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopFutureHandlers

from apps.core.errors import Problem
from apps.results.quotas import META_MAX_BYTES, UPLOAD_MAX_BYTES

FILE, META = "file", "meta"
# No upload takes so long: a connection that pauses is closed (accelhub/gunicorn.py).
STALE_AFTER = datetime.timedelta(days=1)


class Incoming(UploadedFile):
    """One file on its way to the storage: in `settings.INCOMING_DIR` until it is moved, gone once it is closed."""

    def __init__(self, **named: Any) -> None:
        os.makedirs(settings.INCOMING_DIR, mode=0o700, exist_ok=True)
        file = tempfile.NamedTemporaryFile(suffix=".upload", dir=settings.INCOMING_DIR, delete=False)  # noqa: SIM115
        super().__init__(file, **named)
        self.digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self.digest.hexdigest()

    def temporary_file_path(self) -> str:
        """Where it lies. Django's storage moves a file that has one instead of copying it."""
        return str(self.file.name)  # type: ignore[union-attr]

    def forget(self) -> None:
        """Close it, and remove what was not moved."""
        self.close()
        if os.path.exists(self.temporary_file_path()):
            os.unlink(self.temporary_file_path())


class Receiver(FileUploadHandler):
    """Takes the parts `file`, and `meta` where a client sends it as a file. Refuses others, and more bytes than one
    upload may have. `taken` are the files in the order in which they came, whatever becomes of the request."""

    def __init__(self, request: Any) -> None:
        super().__init__(request)
        self.taken: list[Incoming] = []
        self.meta: bytes | None = None
        self._bytes = 0

    def new_file(self, field_name: str, *args: Any, **kwargs: Any) -> None:
        """A part begins. Raises Problem `malformed` for a field that an upload does not have."""
        super().new_file(field_name, *args, **kwargs)
        if field_name not in (FILE, META):
            raise Problem("malformed", f"{field_name[:60]}: is no field of an upload. Send files as `file`.", FILE)
        if field_name == META:
            self.meta = b""
        else:
            self.taken.append(Incoming(name=self.file_name, content_type=self.content_type, charset=None))
        raise StopFutureHandlers

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """A piece of it. Raises Problem `too_large`."""
        if self.field_name == META:
            self.meta = (self.meta or b"") + raw_data
            if len(self.meta) > META_MAX_BYTES:
                raise Problem("too_large", f"meta: has more than {META_MAX_BYTES} bytes.", META)
            return
        self._bytes += len(raw_data)
        if self._bytes > UPLOAD_MAX_BYTES:
            raise too_large(self._bytes)
        file = self.taken[-1]
        file.digest.update(raw_data)
        file.write(raw_data)

    def file_complete(self, file_size: int) -> Incoming | None:
        """It has ended: on the disk, before anybody is told."""
        if self.field_name == META:
            return None
        file = self.taken[-1]
        file.flush()
        os.fsync(file.fileno())
        file.size = file_size
        file.seek(0)
        return file

    def forget(self) -> None:
        """Remove what was not moved to its place."""
        for file in self.taken:
            file.forget()


def forget_stale(*, now: datetime.datetime) -> int:
    """Remove files whose upload died with its server. Returns how many."""
    if not settings.INCOMING_DIR.is_dir():
        return 0
    oldest = (now - STALE_AFTER).timestamp()
    stale = [path for path in settings.INCOMING_DIR.glob("*.upload") if path.stat().st_mtime < oldest]
    for path in stale:
        path.unlink(missing_ok=True)
    return len(stale)


def too_large(seen: int) -> Problem:
    """The refusal of an upload of so many bytes."""
    return Problem(
        "too_large",
        f"file: {seen:,} bytes, at most {UPLOAD_MAX_BYTES:,} of one upload are read. Send shards, or leave logs out.",
        FILE,
    )
