"""`manage.py up`: a whole hub as one process tree. Starts it in order, restarts what dies, leaves nothing behind.

One thread and one loop: the children's lives are tied to the thread that forked them (accelhub/processes.py).
"""

import http.client
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FrameType
from typing import TextIO

from accelhub import demo, gunicorn, processes
from accelhub.embedded import EmbeddedError, FolderLock
from accelhub.embedded.folders import claim_folder, kind_of
from accelhub.embedded.services import READY_SECONDS, Service, start_service, wanted_services
from accelhub.env import BASE_DIR, Paths, is_loopback
from accelhub.log_lines import LineReader, LogLines
from accelhub.programs import COLLECT_STATIC, MIGRATE, SEED_DEMO, STOP_ORDER, Program, programs

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0
# A child that ran this long (seconds) was well: its next death starts the pauses anew.
_WELL_AFTER = 60.0
_PROBE_EVERY = 0.2
# Deaths and signals end a wait by themselves; this is for pauses that run out.
_LOOK_EVERY = 0.5
# Until the hub is ready the loop may stand still for this long: so long may a Ctrl-C wait.
_PROBE_SECONDS = 2.0
# A demo as root is a demo in a container: Celery's ten lines about it would bury ours.
_QUIET_DEMO = "ignore:You're running the worker with superuser privileges"


class _Stop(Exception):
    """Someone asked the hub to stop."""


@dataclass
class _Child:
    """One child and its history. `process` is None before the first start and between a death and the next start.

    `launch` starts it with its output going to a descriptor.
    """

    name: str
    launch: Callable[[int], "subprocess.Popen[bytes]"]
    stop_signal: signal.Signals
    stop_seconds: float
    process: "subprocess.Popen[bytes] | None" = None
    started_at: float = 0.0
    pause: float = _FIRST_PAUSE
    start_at: float = 0.0

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Supervisor:
    """One hub on one data folder.

    `banner` is asked, once the hub answers, for the text that greets whoever started it.
    """

    def __init__(self, where: Paths, *, with_demo: bool, base_url: str, banner: Callable[[], str], out: TextIO) -> None:
        self._where = where
        self._with_demo = with_demo
        self._base_url = base_url
        self._banner = banner
        self._services = wanted_services(where)
        self._programs = [program for program in programs(where.data) if with_demo or not program.demo_only]
        names = [name for stage in STOP_ORDER for name in stage]
        self._log = LogLines(out, ["hub", *names])
        self._children: dict[str, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._stop_requests = 0

    def run(self) -> None:
        """Run the hub until SIGINT, SIGTERM or SIGHUP. Returns after everything has stopped.

        Raises EmbeddedError when it cannot start; what was started by then is stopped.
        """
        refuse_open_demo(self._with_demo)
        with FolderLock(self._where), _Signals(self._selector, self._on_signal):
            refuse_taken_port()
            claim_folder(self._where.data, kind_of(self._with_demo))
            try:
                self._bring_up()
                self._keep_up()
            except _Stop:
                self._say("stopping")
            finally:
                self._bring_down()

    # --- starting ---------------------------------------------------------------------------------------------------

    def _bring_up(self) -> None:
        for service in self._services:
            self._start(_service_child(service))
        for service in self._services:
            self._await_service(service)
        if self._with_demo:
            demo.ensure(self._where.data, self._base_url)
        self._finish([MIGRATE, COLLECT_STATIC])
        if self._with_demo:
            self._finish([SEED_DEMO])
        for program in self._programs:
            self._start(self._program_child(program))

    def _environment(self) -> dict[str, str]:
        """What children see: ours, with demo mode as it was decided here."""
        inherited = {name: value for name, value in os.environ.items() if name != "ACCELHUB_DEMO_FILE"}
        quiet = {"PYTHONWARNINGS": _QUIET_DEMO} if self._with_demo and "PYTHONWARNINGS" not in inherited else {}
        return inherited | quiet | {"ACCELHUB_DEMO": str(int(self._with_demo)), "PYTHONUNBUFFERED": "1"}

    def _program_child(self, program: Program) -> _Child:
        def launch(output: int) -> "subprocess.Popen[bytes]":
            return processes.spawn(
                program.argv, stdout=output, stderr=subprocess.STDOUT, cwd=BASE_DIR, env=self._environment()
            )

        return _Child(program.name, launch, signal.SIGTERM, program.stop_seconds)

    def _start(self, child: _Child) -> None:
        self._children[child.name] = child
        readable, writable = os.pipe()
        try:
            child.process = child.launch(writable)
        except BaseException:
            os.close(readable)
            raise
        finally:
            os.close(writable)
        child.started_at = time.monotonic()
        reader = LineReader(child.name, readable)
        self._selector.register(readable, selectors.EVENT_READ, reader)

    def _await_service(self, service: Service) -> None:
        child = self._children[service.name]
        if not self._wait(lambda: not child.is_running or service.answers(), READY_SECONDS) or not child.is_running:
            raise EmbeddedError(f"The embedded {service.name} does not start: its lines above say why.")

    def _finish(self, steps: Iterable[Program]) -> None:
        """Run programs that end by themselves, side by side. Raises EmbeddedError when one fails."""
        children = [self._program_child(step) for step in steps]
        for child in children:
            self._start(child)
        self._wait(lambda: not any(child.is_running for child in children), float("inf"))
        for child in children:
            assert child.process is not None
            if status := child.process.returncode:
                raise EmbeddedError(f"The step `{child.name}` failed ({_told(status)}): its lines above say why.")
            del self._children[child.name]

    # --- running ----------------------------------------------------------------------------------------------------

    def _keep_up(self) -> None:
        is_announced = False
        next_probe = 0.0
        while True:
            self._pump(_LOOK_EVERY if is_announced else _PROBE_EVERY)
            if self._stop_requests:
                raise _Stop
            for child in self._children.values():
                self._revive(child)
            if not is_announced and time.monotonic() >= next_probe:
                is_announced = self._is_ready()
                next_probe = time.monotonic() + _PROBE_EVERY
                if is_announced:
                    self._log.print(self._banner())

    def _revive(self, child: _Child) -> None:
        """Note a death, and start the child again when its pause is over."""
        now = time.monotonic()
        if child.process is not None and child.process.poll() is not None:
            processes.kill_group(child.process)
            if now - child.started_at >= _WELL_AFTER:
                child.pause = _FIRST_PAUSE
            self._say(f"{child.name} ended ({_told(child.process.returncode)}); again in {child.pause:.0f} s")
            child.process = None
            child.start_at, child.pause = now + child.pause, min(2 * child.pause, _LONGEST_PAUSE)
        elif child.process is None and now >= child.start_at:
            try:
                self._start(child)
            except (EmbeddedError, OSError) as error:
                self._say(f"{child.name} does not start: {error}")
                child.start_at, child.pause = now + child.pause, min(2 * child.pause, _LONGEST_PAUSE)

    def _is_ready(self) -> bool:
        """Whether /readyz answers 200 now."""
        host = gunicorn.host.strip("[]")
        local = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
        connection = http.client.HTTPConnection(local, gunicorn.port, timeout=_PROBE_SECONDS)
        try:
            connection.request("GET", "/readyz", headers={"Host": self._base_url.partition("://")[2]})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    # --- stopping ---------------------------------------------------------------------------------------------------

    def _on_signal(self) -> None:
        self._stop_requests += 1

    def _bring_down(self) -> None:
        """Stop all, stage by stage. A second signal cuts the waits short: then what still runs is killed."""
        first_request = max(self._stop_requests, 1)
        for stage in STOP_ORDER:
            children = [self._children[name] for name in stage if name in self._children]
            running = [child for child in children if child.process is not None]
            for child in running:
                assert child.process is not None
                if child.is_running:
                    child.process.send_signal(child.stop_signal)
            deadline = time.monotonic() + max((child.stop_seconds for child in running), default=0)
            while any(child.is_running for child in running):
                if time.monotonic() > deadline or self._stop_requests > first_request:
                    break
                self._pump(0.1)
            for child in running:
                assert child.process is not None
                if child.is_running:
                    self._say(f"{child.name} did not stop in time and is killed")
                processes.kill_group(child.process)
                child.process.wait()
                child.process = None
        self._pump(0)
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, LineReader):
                self._close(key.data)
        self._say("stopped")

    # --- the loop's one step ----------------------------------------------------------------------------------------

    def _wait(self, is_done: Callable[[], bool], seconds: float) -> bool:
        """Pass lines on until something holds. False when it does not after `seconds`; raises _Stop on a signal."""
        deadline = time.monotonic() + seconds
        while not is_done():
            if self._stop_requests:
                raise _Stop
            if time.monotonic() > deadline:
                return False
            self._pump(0.05)
        return True

    def _pump(self, seconds: float) -> None:
        """Pass on what children wrote; wait up to `seconds` for something to happen."""
        for key, _events in self._selector.select(seconds):
            if not isinstance(key.data, LineReader):
                os.read(key.fd, 512)  # the wake-up bytes of signals: their handlers have run
                continue
            lines, may_continue = key.data.read()
            for line in lines:
                self._log.write(key.data.name, line)
            if not may_continue:
                self._close(key.data)

    def _close(self, reader: LineReader) -> None:
        self._selector.unregister(reader.descriptor)
        os.close(reader.descriptor)

    def _say(self, text: str) -> None:
        self._log.write("hub", text)


def _service_child(service: Service) -> _Child:
    def launch(output: int) -> "subprocess.Popen[bytes]":
        service.prepare()
        return start_service(service, output)

    return _Child(service.name, launch, service.stop_signal, service.stop_seconds)


class _Signals:
    """Turns stop signals into calls, and lets them and SIGCHLD end a wait of the selector."""

    def __init__(self, selector: selectors.BaseSelector, on_stop: Callable[[], None]) -> None:
        self._selector = selector
        self._on_stop = on_stop
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> "_Signals":
        self._readable, self._writable = os.pipe()
        os.set_blocking(self._writable, False)
        self._selector.register(self._readable, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._writable, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue  # started with nohup
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        signal.set_wakeup_fd(-1)
        self._selector.unregister(self._readable)
        os.close(self._readable)
        os.close(self._writable)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            self._on_stop()


def refuse_open_demo(with_demo: bool) -> None:
    """In demo mode anyone may sign in: only this machine may reach it. Raises EmbeddedError."""
    if with_demo and not is_loopback(gunicorn.host.strip("[]")):
        raise EmbeddedError(
            f"ACCELHUB_BIND is {gunicorn.host}, but a demo signs anyone in: unset ACCELHUB_BIND, or ACCELHUB_DEMO."
        )


def refuse_taken_port() -> None:
    """See that the hub's port can be had. Raises EmbeddedError."""
    host = gunicorn.host.strip("[]")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, gunicorn.port))
        except (OSError, OverflowError) as error:
            raise EmbeddedError(
                f"Port {gunicorn.port} on {host} cannot be used ({getattr(error, 'strerror', None) or error}): "
                "stop what uses it, or set PORT to another one."
            ) from error


def _told(status: int) -> str:
    """An exit status in words."""
    return f"exit status {status}" if status >= 0 else f"killed by {signal.Signals(-status).name}"
