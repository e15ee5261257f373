"""Which files are meant by PATH…: reports, to be packed, and archives, which go as they are."""

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from accelhub_client.exits import Stop

# What is taken from a folder. A file that is named itself is taken whatever it is called.
SUFFIXES = (".xml", ".jsonl", ".reportlog")
_ZIP, _GZIP, _TAR, _TAR_AT = b"PK\x03\x04", b"\x1f\x8b", b"ustar", 257


@dataclass(frozen=True)
class Found:
    """A report's file, and what it is called in the archive."""

    path: str
    name: str


@dataclass
class Selection:
    """What is sent. `links`: files below folders that were left out because they are symbolic links."""

    reports: list[Found] = field(default_factory=list)
    archives: list[str] = field(default_factory=list)
    links: int = 0


def select(arguments: list[str]) -> Selection:
    """The files that are meant: files, folders with all that is below them, globs (`**` goes through folders).

    Raises Stop `usage` where there is nothing, or nothing that can be read.
    """
    selection = Selection()
    seen: set[str] = set()
    for argument in arguments:
        before = len(seen)
        for path in _expand(argument):
            root = os.path.dirname(os.path.abspath(path))
            for file in _files(path, selection):
                if os.path.abspath(file) not in seen:
                    seen.add(os.path.abspath(file))
                    _add(selection, file, root)
        if len(seen) == before and os.path.isdir(argument):
            kinds = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
            raise Stop("usage", f"{argument}: no report is below this folder. Looked for {kinds}.")
    selection.reports.sort(key=lambda found: found.name)
    return selection


def _expand(argument: str) -> list[str]:
    if os.path.exists(argument):
        return [argument]
    found = sorted(glob.glob(argument, recursive=True)) if glob.has_magic(argument) else []
    if not found:
        raise Stop("usage", f"{argument}: there is no such file, and nothing that it matches.")
    return found


def _files(path: str, selection: Selection) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for folder, below, names in os.walk(path):
        below.sort()
        for name in sorted(names):
            file = os.path.join(folder, name)
            if not name.lower().endswith(SUFFIXES):
                continue
            if os.path.islink(file):
                selection.links += 1
            elif os.path.isfile(file):
                yield file


def _add(selection: Selection, file: str, root: str) -> None:
    try:
        with open(file, "rb") as opened:
            start = opened.read(_TAR_AT + len(_TAR))
    except OSError as error:
        raise Stop("usage", f"{file}: cannot be read: {error.strerror}.") from None
    if start.startswith((_ZIP, _GZIP)) or start[_TAR_AT:] == _TAR:
        selection.archives.append(file)
    else:
        selection.reports.append(Found(file, _name(file, root)))


def _name(file: str, root: str) -> str:
    """What a file is called: from the working folder on, else from what was named on. The hub reads test files' names
    in it (…/python-pytest/test_ops/x.xml), so as much is kept as is no matter of this machine."""
    whole, here = os.path.abspath(file), os.path.join(os.getcwd(), "")
    name = os.path.relpath(whole, here if whole.startswith(here) else root)
    return os.fsencode(name.replace(os.sep, "/")).decode("utf-8", "replace")
