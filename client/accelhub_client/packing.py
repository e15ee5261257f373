"""Many reports become one zip, written to disk as they are read. The same files make the same bytes: to the hub they
are a duplicate, however often the step is tried."""

import zipfile
from collections.abc import Callable, Iterator
from typing import BinaryIO

from accelhub_client.console import clean
from accelhub_client.exits import Stop
from accelhub_client.selection import Found

NAME = "reports.zip"
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip knows
_UNIX, _MODE = 3, 0o600 << 16
_ZIP64_FROM = 1 << 30  # bytes; well below what needs it, as cleaning may make a file longer


def pack(
    reports: list[Found],
    target: BinaryIO,
    cleaned: Callable[[BinaryIO], Iterator[bytes]],
    advance: Callable[[int], None],
) -> None:
    """Write a zip of the reports. `cleaned` gives what is to be packed of a file, `advance` is told of bytes that were
    read. Raises Stop `usage` for a file that cannot be read."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for report in reports:
            info = zipfile.ZipInfo(report.name, _DATE)
            info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, _UNIX, _MODE
            try:
                is_long = report.length >= _ZIP64_FROM
                with open(report.path, "rb") as source, archive.open(info, "w", force_zip64=is_long) as member:
                    for piece in cleaned(source):
                        member.write(piece)
            except OSError as error:
                raise Stop("usage", f"{clean(report.path)}: cannot be packed: {error.strerror or error}.") from None
            advance(report.length)
