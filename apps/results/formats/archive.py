"""What an upload holds: zip, tar, gzip or a plain report, told by content, never by name. Nothing is written to disk.

Source: docs/results.md, "Archives". Sizes are counted from the bytes that come out, whatever headers say. One bad file
never stops the others: it ends as a note on itself. Only an upload that cannot be opened at all is refused.
"""

import io
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from apps.core.text import HIDDEN_IN_LINE
from apps.results.formats import junit, reportlog, tar
from apps.results.formats.cases import Case, Notes
from apps.results.formats.limits import Limits
from apps.results.formats.texts import Source

READERS = {"junit": junit.read, "reportlog": reportlog.read}
_PEEK = 1024  # bytes that say what a file is: a tar's first header, and white space before a report
_INPUT = 64 * 1024
_ZIP, _EMPTY_ZIP, _GZIP = b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b"
# What is told apart only to say it clearly.
_OTHER_ARCHIVES = (b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c", b"Rar!", b"\x04\x22\x4d\x18")
_XML_STARTS = (b"<", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\0<", b"\0\0\xfe\xff")
_GZIP_BITS = zlib.MAX_WBITS | 16
_DRIVE = re.compile(r"[A-Za-z]:")
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_READ_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What zipfile raises at headers that make no sense.
_ZIP_ERRORS = (zipfile.BadZipFile, RuntimeError, ValueError, OverflowError, OSError, EOFError, struct.error)
_END, _END_SIZE, _COMMENT_MAX = b"PK\x05\x06", 22, 65_535
_LENGTH_AT, _LENGTH64_AT = 12, 40  # where both say how long the list of files is
_END64, _LOCATOR, _END64_SIZE, _LOCATOR_SIZE = b"PK\x06\x06", b"PK\x06\x07", 56, 20


# Why an upload is not taken at all, and what to do next.
REFUSALS = {
    "empty": "The upload is empty. Send a report or an archive of reports.",
    "too_large": "The upload is larger than an upload may be. Send fewer reports, or compress them.",
    "not_a_report": "The upload is no report and no archive that is read. Send JUnit XML or pytest report logs, "
    "plain or as zip, tar, tar.gz or gz.",
    "archive_damaged": "The archive cannot be opened. Send it again, or make it anew.",
    "directory": "The zip's list of files is longer than it may be. Send fewer files in one archive.",
}


class UploadRefused(Exception):
    """An upload that is not taken: a code of REFUSALS, and what was seen."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{REFUSALS[code]} {detail}".strip())
        self.code, self.detail = code, detail


class _Budget:
    """What an upload may still expand to."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.left = limits, limits.expanded


class _Raw:
    """The bytes of an upload as they were sent, counted."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.count = stream, 0

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.count += len(data)
        return data


class Expanded:
    """A stream of expanded bytes. At a limit or at damage it ends with a note; it never raises.

    `compressed` is what it comes from, for the ratio: a number of bytes, or a stream that counts them. `budget` is None
    where a stream outside of it is counted already.
    """

    def __init__(
        self,
        source: Source,
        limits: Limits,
        notes: Notes,
        *,
        most: int,
        budget: _Budget | None,
        compressed: "int | _Raw | Expanded",
    ) -> None:
        self._source, self._limits, self._notes, self._most = source, limits, notes, most
        self._budget, self._compressed = budget, compressed
        self.count = 0
        self._ahead = b""
        self._is_over = False

    def peek(self, size: int) -> bytes:
        """The next bytes, which stay to be read."""
        while len(self._ahead) < size and (piece := self._next(size)):
            self._ahead += piece
        return self._ahead[:size]

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end."""
        if self._ahead:
            data, self._ahead = self._ahead[:size], self._ahead[size:]
            return data
        return self._next(size)

    def readline(self, size: int) -> bytes:
        """A line with its end, of at most `size` bytes."""
        pieces, length = [], 0
        while length < size and (piece := self._ahead or self._next(_INPUT)):
            end = min(piece.find(b"\n") + 1 or len(piece), size - length)
            pieces.append(piece[:end])
            self._ahead = piece[end:]
            length += end
            if piece[end - 1 : end] == b"\n":
                break
        return b"".join(pieces)

    def _next(self, size: int) -> bytes:
        if self._is_over:
            return b""
        try:
            data = self._source.read(size)
        except (zipfile.BadZipFile, zlib.error, EOFError, tar.Damaged) as error:
            self._end("archive_damaged", f"{error}.")
            return b""
        self.count += len(data)
        if self._budget is not None:
            self._budget.left -= len(data)
        return b"" if not data or self._has_passed_a_limit() else data

    def _has_passed_a_limit(self) -> bool:
        """Whether the stream ends here, for it has passed a limit."""
        limits = self._limits
        if self._budget is not None and self._budget.left < 0:
            self._end("expanded", f"At most {limits.expanded} bytes are read.")
        elif self.count > self._most:
            self._end("too_large", f"At most {self._most} bytes are read.")
        elif self.count > limits.ratio_floor and self.count > limits.ratio * self._from:
            self._end("ratio", f"{self.count} bytes from {self._from}.")
        return self._is_over

    @property
    def _from(self) -> int:
        return self._compressed if isinstance(self._compressed, int) else self._compressed.count

    def _end(self, code: str, detail: str) -> None:
        self._is_over = True
        self._notes.add(code, detail)


class _Gunzip:
    """The expanded bytes of a gzip file, also of several in a row, never more at once than asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._inflate = zlib.decompressobj(wbits=_GZIP_BITS)
        self._input = b""

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end. Raises zlib.error, EOFError."""
        while True:
            if not self._input:
                self._input = self._source.read(_INPUT)
            if self._inflate.eof:
                self._input = self._input.lstrip(b"\0")  # what some writers pad with
                if self._input:
                    self._inflate = zlib.decompressobj(wbits=_GZIP_BITS)
                else:
                    return b""
            if not self._input:
                raise EOFError("the gzip file ends too early")
            data = self._inflate.decompress(self._input, size)
            self._input = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            if data:
                return data


class Member:
    """One file of an upload. Its cases are to be read before the next member is asked for.

    `format` is a key of READERS, or '' where a note says why the file is not read.
    """

    def __init__(self, name: str, limits: Limits) -> None:
        self.notes = Notes()
        self.path, is_cleaned = clean(name, limits.path)
        if is_cleaned:
            self.notes.add("path")
        self.format = ""
        self._limits = limits
        self._stream: Expanded | None = None

    def open(self, source: Source, *, budget: _Budget | None, compressed: "int | _Raw | Expanded") -> "Member":
        """Look at the first bytes, and through one layer of gzip."""
        limits, most = self._limits, self._limits.member
        stream = Expanded(source, limits, self.notes, most=most, budget=budget, compressed=compressed)
        kind = kind_of(stream.peek(_PEEK))
        if kind == "gzip":
            stream = Expanded(_Gunzip(stream), limits, self.notes, most=most, budget=budget, compressed=stream)
            kind = kind_of(stream.peek(_PEEK))
        if kind in READERS:
            self.format, self._stream = kind, stream
        else:
            self.notes.add("nested" if kind in ("zip", "tar", "gzip") else kind)
        return self

    def cases(self) -> Iterator[Case]:
        """The cases of the file; none where its format is not known."""
        if self._stream is not None:
            yield from READERS[self.format](self._stream, path=self.path, limits=self._limits, notes=self.notes)


def members(stream: BinaryIO, *, name: str, limits: Limits, notes: Notes) -> Iterator[Member]:
    """The files of an upload, one after the other. `stream` can be sought; `notes` are the upload's own.

    Raises UploadRefused, before the first member, where there is nothing to read at all.
    """
    size = stream.seek(0, io.SEEK_END)
    if size == 0:
        raise UploadRefused("empty")
    if size > limits.compressed:
        raise UploadRefused("too_large", f"It has {size} bytes, at most {limits.compressed} are taken.")
    budget, kind = _Budget(limits), _outer_kind(stream)
    found: Iterator[Member]
    if kind == "zip":
        found = _zip(stream, size, budget)
    elif kind in ("tar", "tar.gz"):
        source = _Raw(stream)
        packed = _Gunzip(source) if kind == "tar.gz" else source
        found = _tar(
            Expanded(packed, limits, notes, most=limits.expanded, budget=budget, compressed=source), limits, notes
        )
    elif kind in ("gzip", *READERS):
        found = iter([Member(name, limits).open(_Raw(stream), budget=budget, compressed=size)])
    else:
        raise UploadRefused(kind)
    yield from _limited(found, budget, notes)


def kind_of(start: bytes) -> str:
    """What a file is that starts so: zip, gzip, tar, a key of READERS, or the code of a note."""
    if start.startswith((_ZIP, _EMPTY_ZIP)):
        return "zip"
    if start.startswith(_GZIP):
        return "gzip"
    if start.startswith(_OTHER_ARCHIVES):
        return "method"
    if tar.looks_like_tar(start):
        return "tar"
    if start.startswith(_XML_STARTS) or start.lstrip().startswith(b"<"):
        return "junit"
    if start.lstrip().startswith(b"{"):
        return "reportlog"
    return "not_a_report"


def clean(name: str, limit: int) -> tuple[str, bool]:
    """A file's name as it is shown and compared, and whether more than its spelling had to change."""
    text = name.replace("\\", "/")
    parts = [part for part in text.split("/") if part not in ("", ".", "..") and not _DRIVE.fullmatch(part)]
    path = HIDDEN_IN_LINE.sub("\ufffd", "/".join(parts))[-limit:]
    is_odd = text.startswith("/") or ".." in text.split("/") or _DRIVE.match(text) is not None
    return path or "unnamed", is_odd or path != "/".join(parts) or not path


def _outer_kind(stream: BinaryIO) -> str:
    """What the upload is: zip, tar, tar.gz, gzip, a key of READERS, or the code of a refusal."""
    stream.seek(0)
    kind = kind_of(stream.read(_PEEK))
    stream.seek(0)
    if kind == "gzip":
        start = _start_of(_Gunzip(_Raw(stream)))
        stream.seek(0)
        if not start:
            return "archive_damaged"
        return "tar.gz" if kind_of(start) == "tar" else kind
    return "not_a_report" if kind == "method" else kind


def _start_of(source: _Gunzip) -> bytes:
    """The first expanded bytes, as far as they can be read."""
    start = b""
    try:
        while len(start) < _PEEK and (piece := source.read(_PEEK)):
            start += piece
    except (zlib.error, EOFError):
        pass  # whoever reads on meets the same and says so
    return start


def _limited(found: Iterator[Member], budget: _Budget, notes: Notes) -> Iterator[Member]:
    """So many members as an upload may have and expand to; of several with one name each is read."""
    seen: set[str] = set()
    for member in found:
        if len(seen) >= budget.limits.files:
            notes.add("too_many_files", f"At most {budget.limits.files} are read.")
            return
        path = member.path
        if path in seen:
            member.notes.add("same_path")
            path = f"{path}\n{len(seen)}"  # no name has a line's end, so it is none that could come
        seen.add(path)
        yield member
        if budget.left < 0:
            notes.add("expanded", f"At most {budget.limits.expanded} bytes are read.")
            return


def _tar(stream: Expanded, limits: Limits, notes: Notes) -> Iterator[Member]:
    """The files of a tar; what else stands in it ends as a note."""
    try:
        for entry in tar.entries(stream):
            if entry.is_directory:
                continue
            member = Member(entry.name, limits)
            if not entry.is_file:
                member.notes.add("link")
                yield member
                continue
            yield member.open(entry.stream, budget=None, compressed=stream)
    except tar.Damaged as error:
        notes.add("archive_damaged", f"{error}.")


def _zip(stream: BinaryIO, size: int, budget: _Budget) -> Iterator[Member]:
    """The files of a zip. Raises UploadRefused where its list of files cannot be read."""
    limits = budget.limits
    _check_directory(stream, size, limits)
    try:
        archive = zipfile.ZipFile(stream)
    except _ZIP_ERRORS as error:
        raise UploadRefused("archive_damaged", f"Seen: {error}.") from None
    with archive:
        for entry in archive.infolist():
            if entry.is_dir():
                continue
            member = Member(entry.filename, limits)
            code = _why_not(entry)
            if code:
                member.notes.add(code)
                yield member
                continue
            try:
                source = archive.open(entry)
            except _ZIP_ERRORS as error:
                member.notes.add("archive_damaged", f"{error}.")
                yield member
                continue
            with source:
                yield member.open(source, budget=budget, compressed=min(entry.compress_size, size))


def _why_not(entry: zipfile.ZipInfo) -> str:
    """The note on an entry that is not read; '' where it is."""
    if entry.flag_bits & _ENCRYPTED:
        return "encrypted"
    if entry.compress_type not in _READ_METHODS:
        return "method"
    mode = entry.external_attr >> 16  # of Unix; other systems leave it empty
    return "link" if stat.S_IFMT(mode) not in (0, stat.S_IFREG) else ""


def _check_directory(stream: BinaryIO, size: int, limits: Limits) -> None:
    """The standard library holds the whole list of files: look at its size before. Raises UploadRefused."""
    start = max(size - _END_SIZE - _COMMENT_MAX - _LOCATOR_SIZE - _END64_SIZE, 0)
    stream.seek(start)
    end = stream.read()
    at = end.rfind(_END)
    if at < 0 or len(end) - at < _END_SIZE:
        raise UploadRefused("archive_damaged", "Seen: a zip that ends too early.")
    (length,) = struct.unpack_from("<L", end, at + _LENGTH_AT)
    at64 = at - _LOCATOR_SIZE - _END64_SIZE
    if at64 >= 0 and end.startswith(_LOCATOR, at - _LOCATOR_SIZE) and end.startswith(_END64, at64):
        (length,) = struct.unpack_from("<Q", end, at64 + _LENGTH64_AT)
    if length > limits.directory:
        raise UploadRefused("directory", f"It has {length} bytes, at most {limits.directory} are read.")
    stream.seek(0)
