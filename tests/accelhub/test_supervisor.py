"""The supervisor with programs of a few lines: order, restarts, output, and that nothing stays behind."""

import io
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accelhub.log_lines import LineReader, LogLines
from tests.accelhub.process_tree import command, eventually, living
from tests.accelhub.started import Started

# Says when it was asked to stop, and takes a moment to do so: another one that stopped at the same time would show.
POLITE = """
import signal, sys, time
def stop(*_):
    print("asked", flush=True); time.sleep(0.2); print("gone", flush=True); sys.exit()
signal.signal(signal.SIGTERM, stop)
print("up", flush=True)
time.sleep(600)
"""
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", child])
print("up", flush=True)
time.sleep(600)
"""
READY = """
import http.server, os
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/readyz" else 404); self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
"""

Start = Callable[..., Started]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a hub of fake programs, named by row of the table. It is gone after the test, however that ends."""
    hubs: list[Started] = []

    def begin(environment: dict[str, str] | None = None, **code: str) -> Started:
        hub = Started(["-m", "tests.accelhub.fake_hub", json.dumps(code)], tmp_path / "data", **(environment or {}))
        hubs.append(hub)
        return hub

    yield begin
    for hub in hubs:
        hub.close()


def lines_of(hub: Started, text: str) -> list[str]:
    """The names of those who wrote `text`, in order."""
    return [line.split("|")[0].strip() for line in hub.out.splitlines() if line.endswith(f"| {text}")]


def test_programs_stop_in_order_and_the_hub_ends_well(start: Start) -> None:
    names = ("web", "relay", "heavy", "beat", "simulate")
    hub = start(**dict.fromkeys(names, POLITE))
    eventually(lambda: set(lines_of(hub, "up")) == set(names), "all programs are up")
    tree = hub.tree()
    hub.process.send_signal(signal.SIGINT)
    assert hub.ends() == 0
    story = [
        (line.split("|")[0].strip(), line.split("|")[1].strip())
        for line in hub.out.splitlines()
        if line.endswith(("asked", "gone"))
    ]
    one_by_one = [(name, word) for name in ("simulate", "beat", "web") for word in ("asked", "gone")]
    assert story[:6] == one_by_one
    # The two workers finish side by side.
    assert {name for name, word in story[6:8] if word == "asked"} == {"relay", "heavy"}
    assert hub.err == ""
    assert living(tree) == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_stop_signals_end_it_as_well(start: Start, number: signal.Signals) -> None:
    hub = start(web=POLITE)
    hub.writes("| up")
    hub.process.send_signal(number)
    assert hub.ends() == 0
    assert lines_of(hub, "gone") == ["web"]


def test_a_program_that_does_not_stop_is_killed_with_its_children(start: Start) -> None:
    hub = start(relay=STUBBORN)
    hub.writes("| up")
    tree = hub.tree()
    assert sum("SIG_IGN" in command(pid) for pid in hub.below()) == 2
    hub.process.send_signal(signal.SIGINT)
    assert hub.ends() == 0
    assert "relay did not stop in time and is killed" in hub.out
    assert living(tree) == {}


def test_nothing_outlives_a_killed_supervisor(start: Start) -> None:
    hub = start(web=POLITE, relay=STUBBORN)
    eventually(lambda: lines_of(hub, "up").count("relay") == lines_of(hub, "up").count("web") == 1, "both are up")
    direct = {pid for pid in hub.below() if "subprocess.Popen" in command(pid) or "asked" in command(pid)}
    assert len(direct) == 2
    hub.process.kill()
    hub.ends()
    eventually(lambda: not living(direct), "the kernel told the children")


def test_a_program_that_ends_is_started_again_after_growing_pauses(start: Start) -> None:
    hub = start(beat="print('up', flush=True); raise SystemExit(3)", heavy=POLITE)
    hub.writes("beat ended (exit status 3); again in 2 s")
    assert "beat ended (exit status 3); again in 1 s" in hub.out
    assert lines_of(hub, "up").count("beat") == 2
    assert lines_of(hub, "up").count("heavy") == 1


def test_a_program_that_is_killed_is_told_by_its_signal(start: Start) -> None:
    hub = start(web=POLITE)
    hub.writes("| up")
    (web,) = (pid for pid in hub.below() if "asked" in command(pid))
    os.kill(web, signal.SIGKILL)
    hub.writes("web ended (killed by SIGKILL); again in 1 s")
    eventually(lambda: lines_of(hub, "up") == ["web", "web"], "web is up again")


def test_a_failing_step_stops_the_start_in_one_line(start: Start) -> None:
    hub = start(migrate="import sys; print('no such table'); sys.exit(5)", web=POLITE)
    assert hub.ends() == 1
    assert hub.err == "The step `migrate` failed (exit status 5): its lines above say why.\n"
    assert lines_of(hub, "no such table") == ["migrate"]
    assert lines_of(hub, "up") == []


def test_the_banner_comes_once_when_the_hub_answers(start: Start) -> None:
    hub = start(web=READY)
    hub.writes("the banner")
    hub.process.send_signal(signal.SIGINT)
    assert hub.ends() == 0
    assert hub.out.splitlines().count("the banner") == 1


def test_a_second_hub_on_the_folder_is_refused_in_one_line(start: Start, tmp_path: Path) -> None:
    first = start(web=POLITE)
    first.writes("| up")
    second = start()
    assert second.ends() == 1
    assert second.err == (
        f"Another hub (pid {first.process.pid}) already runs on {tmp_path}/data. Stop it, or set ACCELHUB_DATA_DIR.\n"
    )
    assert second.out == ""


def test_a_taken_port_is_refused_in_one_line(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        hub = start({"PORT": str(port)})
        assert hub.ends() == 1
    assert hub.err == (
        f"Port {port} on 127.0.0.1 cannot be used (Address already in use): stop what uses it, or set PORT to another "
        "one.\n"
    )


def test_a_demo_does_not_listen_to_the_network(start: Start) -> None:
    hub = start({"ACCELHUB_BIND": "0.0.0.0"})  # noqa: S104
    assert hub.ends() == 1
    assert hub.err == ("ACCELHUB_BIND is 0.0.0.0, but a demo signs anyone in: unset ACCELHUB_BIND, or ACCELHUB_DEMO.\n")


def test_programs_see_demo_mode_as_it_was_decided(start: Start) -> None:
    tell = "import os; print('demo', os.environ['ACCELHUB_DEMO'])"
    hub = start({"ACCELHUB_DEMO": "0", "ACCELHUB_DEMO_FILE": "/nowhere"}, static=tell, web=POLITE, simulate=POLITE)
    hub.writes("web      | up")
    assert lines_of(hub, "demo 0") == ["static"]
    assert "simulate |" not in hub.out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "is_coloured"), [(io.StringIO(), False), (Terminal(), True)])
def test_colours_are_for_terminals(stream: io.StringIO, is_coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    LogLines(stream, ["web", "postgres"]).write("web", "hello")
    assert ("\033[" in stream.getvalue()) is is_coloured
    assert "web      |" in stream.getvalue()


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    LogLines(terminal, ["web"]).write("web", "hello")
    assert terminal.getvalue() == "web | hello\n"


def test_lines_are_cut_where_they_end() -> None:
    readable, writable = os.pipe()
    reader = LineReader("web", readable)
    assert reader.read() == ([], True)
    os.write(writable, b"one\ntw")
    assert reader.read() == (["one"], True)
    os.write(writable, b"o\r\n\xff three")
    assert reader.read() == (["two"], True)
    os.close(writable)
    assert reader.read() == (["� three"], False)
    os.close(readable)
