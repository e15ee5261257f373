"""The body of an upload: multipart/form-data of known length, read from disk while it is sent."""

import json
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from accelhub_client.exits import Stop

_CHUNK = 64 * 1024


@dataclass(frozen=True)
class Part:
    """A file of the upload: its name, its opened bytes, and how many they are."""

    name: str
    file: BinaryIO
    length: int

    @classmethod
    def of(cls, name: str, file: BinaryIO) -> "Part":
        return cls(name, file, os.fstat(file.fileno()).st_size)


class Multipart:
    """`meta` and files as a body. It can be sent again: each time from its beginning."""

    def __init__(self, meta: dict[str, Any], parts: list[Part], advance: Callable[[int], None]) -> None:
        self._boundary = secrets.token_hex(16)
        self._parts, self._advance = parts, advance
        said = json.dumps(meta).encode()
        self._meta = self._head('name="meta"', "application/json") + said + b"\r\n"
        self._heads = [self._head(f'name="file"; filename="{_quoted(part.name)}"') for part in parts]
        self._end = f"--{self._boundary}--\r\n".encode()
        files = sum(len(head) + part.length + 2 for head, part in zip(self._heads, parts))
        self.length = len(self._meta) + files + len(self._end)

    @property
    def content_type(self) -> str:
        return f"multipart/form-data; boundary={self._boundary}"

    def pieces(self) -> Iterator[bytes]:
        """The body. Raises Stop `usage` where a file has become shorter."""
        yield self._meta
        for head, part in zip(self._heads, self._parts):
            yield head
            yield from self._read(part)
            yield b"\r\n"
        yield self._end

    def _read(self, part: Part) -> Iterator[bytes]:
        part.file.seek(0)
        left = part.length
        while left:
            piece = part.file.read(min(_CHUNK, left))
            if not piece:
                raise Stop("usage", f"{part.name}: has become shorter while it was sent. Upload it when it is written.")
            left -= len(piece)
            yield piece
            self._advance(len(piece))

    def _head(self, disposition: str, content_type: str = "application/octet-stream") -> bytes:
        lines = (
            f"--{self._boundary}",
            f"Content-Disposition: form-data; {disposition}",
            f"Content-Type: {content_type}",
        )
        return "\r\n".join((*lines, "", "")).encode()


def _quoted(name: str) -> str:
    """A file's name as browsers write it into a header."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return text.replace("\\", "_").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
