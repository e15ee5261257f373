"""The supervisor's output: every child's lines on one stream, each behind its aligned name."""

import os
from typing import TextIO

_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)  # ANSI foreground codes, told apart on dark and light
# A line without an end is cut here (bytes), so that one child cannot fill our memory.
_LONGEST_LINE = 65_536


class LogLines:
    """Writes `name | line`. Colours only on a terminal that wants them (NO_COLOR)."""

    def __init__(self, stream: TextIO, names: list[str]) -> None:
        self._stream = stream
        self._width = max(map(len, names))
        self._colour = {name: _COLOURS[index % len(_COLOURS)] for index, name in enumerate(names)}
        self._is_coloured = stream.isatty() and "NO_COLOR" not in os.environ

    def write(self, name: str, line: str) -> None:
        """Write one line of the child `name`. A reader that went away does not stop the hub."""
        prefix = f"{name:<{self._width}} |"
        if self._is_coloured and name in self._colour:
            prefix = f"\033[{self._colour[name]}m{prefix}\033[0m"
        self.print(f"{prefix} {line}")

    def print(self, text: str) -> None:
        """Write text as it stands."""
        try:
            self._stream.write(text + "\n")
            self._stream.flush()
        except OSError:
            self._stream = open(os.devnull, "w")  # noqa: SIM115  for the rest of our life


class LineReader:
    """Cuts what comes out of one pipe into lines. Owns the descriptor it reads from."""

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self.descriptor = descriptor
        os.set_blocking(descriptor, False)
        self._rest = b""

    def read(self) -> tuple[list[str], bool]:
        """The lines that are complete now, and whether more may come. At the end the rest counts as a line."""
        try:
            chunk = os.read(self.descriptor, _LONGEST_LINE)
        except BlockingIOError:
            return [], True
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if self._rest and (not chunk or len(self._rest) >= _LONGEST_LINE):
            lines.append(self._rest)
            self._rest = b""
        return [line.decode(errors="replace").rstrip("\r") for line in lines], bool(chunk)
