"""Looking at processes through /proc: who descends from whom, who is still alive."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

# How long (seconds) something may take that normally takes a moment. A bound against hanging, not an expectation.
PATIENCE = 180.0


def descendants(pid: int) -> set[int]:
    """All living processes below `pid`."""
    children: dict[int, list[int]] = {}
    for other in _all_pids():
        if (stat := _stat(other)) is not None:
            children.setdefault(int(stat[1]), []).append(other)
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.update(below)
        waiting += below
    return found


def command(pid: int) -> str:
    """The command line, words separated by blanks; empty when the process is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def living(pids: Iterable[int]) -> dict[int, str]:
    """Those of `pids` that still run, with their commands. A zombie has ended: who reaps it is its parent's affair."""
    return {pid: command(pid) for pid in pids if (stat := _stat(pid)) is not None and stat[0] not in "ZX"}


def marked(mark: str) -> set[int]:
    """All processes whose environment at their start held `mark`."""
    return {pid for pid in _all_pids() if mark.encode() in _environment(pid)}


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds; fail with `what` when it never does."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.05)


def _all_pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat after the name: state, parent, …"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
