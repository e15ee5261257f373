"""The entries of a tar, as they come: headers by the standard library, the walk over them our own.

The standard library's walk holds extended headers of any size in memory, follows chains of them by recursion, and ends
without a word at a damaged header.
"""

import tarfile
from collections.abc import Iterator
from typing import NamedTuple

from apps.results.formats.texts import Source

_BLOCK = tarfile.BLOCKSIZE
_EXTENDED_MAX = 64 * 1024  # bytes of a long name or of extended attributes
_SKIP = 64 * 1024
_LONG_NAME, _LONG_LINK, _EXTENDED, _GLOBAL = tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, b"x", b"g"
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)


class Entry(NamedTuple):
    """An entry: its name, whether it is a file, its bytes."""

    name: str
    is_file: bool
    is_directory: bool
    stream: "Body"


class Damaged(Exception):
    """The tar cannot be read any further; the text says why."""


class Body:
    """The bytes of one entry, to be read before the next entry is asked for."""

    def __init__(self, stream: Source, size: int) -> None:
        self._stream, self._left = stream, size
        self._padding = -size % _BLOCK

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end. Raises Damaged where the tar ends before the entry does."""
        data = self._stream.read(min(size, self._left)) if self._left else b""
        if self._left and not data:
            raise Damaged("it ends within a file")
        self._left -= len(data)
        return data

    def skip(self) -> None:
        """Read up to the next header."""
        while self.read(_SKIP):
            pass
        _exactly(self._stream, self._padding)


def looks_like_tar(start: bytes) -> bool:
    """Whether a file that starts so is a tar: its first header's checksum is right."""
    try:
        tarfile.TarInfo.frombuf(start[:_BLOCK], "utf-8", "replace")
    except tarfile.HeaderError:
        return False
    return True


def entries(stream: Source) -> Iterator[Entry]:
    """The entries in their sequence. Raises Damaged."""
    name = ""
    while True:
        block = _exactly(stream, _BLOCK)
        if block is None or not block.strip(b"\0"):
            return  # the end: with or without its two empty blocks
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise Damaged(f"header: {error}") from None
        if header.size < 0:
            raise Damaged("a file of negative size")
        body = Body(stream, header.size if header.type not in (tarfile.LNKTYPE, tarfile.SYMTYPE) else 0)
        if header.type in (_LONG_NAME, _LONG_LINK, _EXTENDED, _GLOBAL):
            said = _extended(body, header)
            if header.type == _LONG_NAME:
                name = said.rstrip(b"\0").decode("utf-8", "surrogateescape")
            elif header.type == _EXTENDED:
                name = _path(said) or name
        else:
            yield Entry(name or header.name, header.type in _FILES, header.type == tarfile.DIRTYPE, body)
            name = ""
        body.skip()


def _extended(body: Body, header: tarfile.TarInfo) -> bytes:
    if header.size > _EXTENDED_MAX:
        raise Damaged(f"an extended header of {header.size} bytes")
    said = b""
    while piece := body.read(_EXTENDED_MAX):
        said += piece
    return said


def _path(records: bytes) -> str:
    """The path in extended attributes: records of `length key=value`."""
    while records:
        length, _, _ = records.partition(b" ")
        if not length.isdigit() or len(length) > 6 or not 0 < int(length) <= len(records):
            raise Damaged("extended attributes")
        record, records = records[len(length) + 1 : int(length) - 1], records[int(length) :]
        key, _, value = record.partition(b"=")
        if key == b"path":
            return value.decode("utf-8", "surrogateescape")
    return ""


def _exactly(stream: Source, size: int) -> bytes | None:
    """So many bytes, or None at the very end. Raises Damaged at an end in between."""
    data = b""
    while len(data) < size:
        piece = stream.read(size - len(data))
        if not piece:
            if data:
                raise Damaged("it ends within a header")
            return None
        data += piece
    return data
