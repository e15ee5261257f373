"""Which files are meant by PATH…: reports, to be packed, and archives, which go as they are."""

import glob
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from accelhub_client.console import clean
from accelhub_client.exits import Stop

# What is taken from a folder. A file that is named itself is taken whatever it is called.
SUFFIXES = (".xml", ".jsonl", ".reportlog")
_ZIP, _GZIP, _TAR, _TAR_AT = b"PK\x03\x04", b"\x1f\x8b", b"ustar", 257


@dataclass(frozen=True)
class Found:
    """A report's file, what it is called in the archive, and its bytes."""

    path: str
    name: str
    length: int


@dataclass
class Selection:
    """What is sent. `links`: files below folders that were left out because they are symbolic links."""

    by_name: dict[str, Found] = field(default_factory=dict)
    archives: list[str] = field(default_factory=list)
    links: int = 0

    @property
    def reports(self) -> list[Found]:
        """The reports, by name."""
        return [self.by_name[name] for name in sorted(self.by_name)]


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
            length = os.fstat(opened.fileno()).st_size
    except OSError as error:
        raise Stop("usage", f"{clean(file)}: cannot be read: {error.strerror}.") from None
    if start.startswith((_ZIP, _GZIP)) or start[_TAR_AT:] == _TAR:
        selection.archives.append(file)
        return
    name = _name(file, root)
    numbered = (f"{number}/{name}" for number in itertools.count(2))
    while name in selection.by_name:
        name = next(numbered)
    selection.by_name[name] = Found(file, name, length)


def _name(file: str, root: str) -> str:
    """What a file is called: from the working folder on, else from what was named on. The hub reads test files' names
    in it (…/python-pytest/test_ops/x.xml), so as much is kept as is no matter of this machine."""
    whole, here = os.path.abspath(file), os.path.join(os.getcwd(), "")
    name = os.path.relpath(whole, here if whole.startswith(here) else root)
    return os.fsencode(name.replace(os.sep, "/")).decode("utf-8", "replace")
