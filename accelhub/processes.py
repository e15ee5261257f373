"""Child processes that cannot outlive their parent.

Each child leads its own session, so that the terminal's Ctrl-C reaches the parent alone and the parent decides the
order of stopping. The kernel signals the child when the parent dies, however it dies.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

_PR_SET_PDEATHSIG = 1
# Loaded once, here: a forked child must not look up libraries before its exec.
_libc = ctypes.CDLL(None, use_errno=True)


def die_with(parent_pid: int, death_signal: signal.Signals) -> None:
    """Ask the kernel to send this process `death_signal` when the thread that forked it ends.

    Ends the process at once when the parent is gone already: between fork and prctl nobody would have told us.
    """
    if sys.platform != "linux":
        return
    _libc.prctl(_PR_SET_PDEATHSIG, int(death_signal))
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)


def spawn(
    argv: Sequence[str], *, death_signal: signal.Signals = signal.SIGKILL, **options: Any
) -> subprocess.Popen[bytes]:
    """Start `argv` as the leader of its own session, tied to this process's life.

    Call from the main thread: the tie is to the calling thread. `options` go to Popen. Raises OSError.
    """
    return subprocess.Popen(
        argv,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        preexec_fn=_tie(os.getpid(), death_signal),
        **options,
    )


def run(argv: Sequence[str], *, stdin: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `argv` to its end, tied to this process's life as by `spawn`; gather its output as text. Raises OSError."""
    return subprocess.run(
        argv,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        preexec_fn=_tie(os.getpid(), signal.SIGKILL),
        **options,
    )


def _tie(parent_pid: int, death_signal: signal.Signals) -> Callable[[], None]:
    return lambda: die_with(parent_pid, death_signal)


def stop(process: subprocess.Popen[bytes], stop_signal: signal.Signals, seconds: float) -> None:
    """Send `stop_signal`, wait up to `seconds`, kill what is left of the process group. Returns when it is gone."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(stop_signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    kill_group(process)
    process.wait()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for every process of the child's group, the leader's orphans included."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
