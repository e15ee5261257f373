"""Bytes to text that an XML parser takes and PostgreSQL can store, and texts that are kept only in part. Streaming."""

import codecs
import re
from collections.abc import Iterator
from typing import Protocol

from apps.results.formats.cases import Notes

CHUNK = 128 * 1024  # bytes read at once: small beside what a parse may hold, large beside the cost of a call
REPLACEMENT = "\ufffd"
# What XML forbids, which contains what PostgreSQL refuses (NUL, halves of surrogate pairs).
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_CONTROLS = [bytes([code]) for code in range(32) if code not in b"\t\n\r"]
_REFERENCE = re.compile(r"&#(?:x([0-9A-Fa-f]+)|([0-9]+));")
_REFERENCE_MAX = 16  # characters; a longer one is no character
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_DECLARED = re.compile(rb"""\s*<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
# Encodings of which every byte string is text of some sort: codecs that compress or evaluate are not among them.
_ENCODINGS = frozenset(
    ["ascii", "cp932", "cp949", "cp950", "big5", "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "koi8-r", "shift_jis"]
    + [f"cp{number}" for number in (437, 850, 852, 866, *range(1250, 1259))]
    + [f"iso8859-{number}" for number in range(1, 17)]
)


class Source(Protocol):
    """Anything that is read in pieces."""

    def read(self, size: int, /) -> bytes: ...


class LineSource(Source, Protocol):
    """The same, by lines too."""

    def readline(self, size: int, /) -> bytes: ...


def xml_text(stream: Source, notes: Notes) -> Iterator[str]:
    """The text of an XML file, in pieces, in the encoding that it has. Forbidden characters are replaced and noted."""
    chunk = stream.read(CHUNK)
    encoding = _encoding(chunk, notes)
    decoder = codecs.getincrementaldecoder(encoding)("surrogateescape" if encoding == "utf-8" else "replace")
    held = ""
    while chunk:
        text = decoder.decode(chunk)
        if _is_suspicious(chunk, text):
            text = _replaced(text, notes)
        text, held = _whole(held + text)
        if "&#" in text:
            text = _REFERENCE.sub(lambda found: _reference(found, notes), text)
        yield text
        chunk = stream.read(CHUNK)
    yield _replaced(held + decoder.decode(b"", True), notes)


def json_lines(stream: LineSource, limit: int, notes: Notes) -> Iterator[tuple[bytes, bool]]:
    """The lines of a log without their ends, and whether each has one. One past `limit` bytes is left out and noted."""
    while line := stream.readline(limit + 1):
        if len(line) <= limit:
            yield line.rstrip(b"\r\n"), line.endswith(b"\n")
            continue
        notes.add("long_line", f"More than {limit} bytes.")
        while line and not line.endswith(b"\n"):
            line = stream.readline(CHUNK)


def _encoding(start: bytes, notes: Notes) -> str:
    """The codec for a file that starts so."""
    declared = _DECLARED.match(start.removeprefix(codecs.BOM_UTF8))
    name = declared[1].decode("ascii") if declared else "utf-8"
    for mark, encoding in _BOMS:
        if start.startswith(mark):
            if declared and not _is_utf8(name):
                notes.add("encoding", f"Declared: {name}.")
            return encoding
    if _is_utf8(name):
        return "utf-8"
    try:
        encoding = codecs.lookup(name).name
    except LookupError:
        encoding = ""
    if encoding in _ENCODINGS:
        return encoding
    notes.add("encoding", f"Declared: {name}.")
    return "utf-8"


def _is_utf8(name: str) -> bool:
    return name.lower().replace("_", "-") in ("utf-8", "utf8")


def _is_suspicious(chunk: bytes, text: str) -> bool:
    """Whether something in it has to be replaced; cheap, because nearly nothing has."""
    for control in _CONTROLS:  # a search for one byte runs at memory's speed, one for several does not
        if control in chunk:
            return True
    if text.isascii():
        return False
    if "\ufffd" in text or "\ufffe" in text or "\uffff" in text:
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _replaced(text: str, notes: Notes) -> str:
    text, count = FORBIDDEN.subn(REPLACEMENT, text)
    if count:
        notes.add("characters", count=count)
    return text


def _whole(text: str) -> tuple[str, str]:
    """The text up to a reference that the end of the piece has cut, and the rest."""
    start = text.rfind("&", -_REFERENCE_MAX)
    if start < 0 or ";" in text[start:]:
        return text, ""
    return text[:start], text[start:]


def _reference(found: re.Match[str], notes: Notes) -> str:
    """A reference to a character, or its replacement where XML knows no such character."""
    digits = found[1] or found[2]
    code = int(digits, 16 if found[1] else 10) if len(digits) <= _REFERENCE_MAX else -1
    if 0 <= code <= 0x10FFFF and not FORBIDDEN.match(chr(code)):
        return found[0]
    notes.add("characters")
    return REPLACEMENT


_TAILS = 4  # times the limit that a tail may grow to before it is cut back


class Excerpt:
    """A text that arrives in pieces, of which the head and the tail are kept: a trace's cause stands at its end."""

    __slots__ = ("_pieces", "_room", "_size", "_tail", "_tail_size", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._room = limit // 2
        self._pieces: list[str] = []
        self._tail: list[str] = []
        self._size = self._tail_size = 0

    def add(self, piece: str) -> None:
        """The next piece; at most a few times the limit is ever held."""
        self._size += len(piece)
        if self._room:
            head = piece[: self._room]
            self._pieces.append(head)
            self._room -= len(head)
            piece = piece[len(head) :]
        if piece:
            self._tail.append(piece)
            self._tail_size += len(piece)
            if self._tail_size > _TAILS * self.limit:
                self._tail = [self._end()]
                self._tail_size = len(self._tail[0])

    def _end(self) -> str:
        size = self.limit - self.limit // 2
        return "".join(self._tail)[-size:]

    @property
    def is_cut(self) -> bool:
        return self._size > self.limit

    def __str__(self) -> str:
        left_out = self._size - self.limit
        between = f"\n… {left_out} characters left out …\n" if left_out > 0 else ""
        return "".join(self._pieces) + between + (self._end() if self._tail else "")
