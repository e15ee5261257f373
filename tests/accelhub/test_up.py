"""`manage.py up` for real: PostgreSQL, Redis, gunicorn, Celery and the demo's simulator, as `make demo` starts them."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from accelhub.env import Paths
from tests.accelhub.process_tree import command, eventually, living
from tests.accelhub.started import ROOT, Started, free_port
from tests.environment import without_ours


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One data folder for all starts here: only the first has to fill it."""
    folder = tmp_path_factory.mktemp("up") / "data"
    yield folder
    shutil.rmtree(Paths(folder).runtime, ignore_errors=True)


@pytest.fixture
def hub(data: Path) -> Iterator[Started]:
    """A demo that answers. Whatever happens, it is gone after the test."""
    started = Started(["manage.py", "up"], data, ACCELHUB_DEMO="1")
    try:
        started.writes("Stop it with Ctrl-C.")
        yield started
    finally:
        started.close()


def manage(data: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=without_ours(os.environ) | {"ACCELHUB_DATA_DIR": str(data)} | environment,
    )


def is_ready(hub: Started) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{hub.port}/readyz", timeout=5).status_code == 200
    except requests.RequestException:
        return False


def the(hub: Started, *words: str) -> int:
    """The first process of the hub whose command holds these words: of several alike, the parent."""
    return min(pid for pid in hub.below() if all(word in command(pid) for word in words))


def test_a_demo_lives_and_ends_without_a_trace(hub: Started, data: Path) -> None:
    assert is_ready(hub)
    for word in (f"AccelHub runs at http://127.0.0.1:{hub.port}", "demo-maintainer", "demo-operator"):
        assert word in hub.out
    # Its services serve other commands, and nothing else may start or remove them.
    shell = manage(data, "shell", "-v0", "-c", "from django.db import connection; print(connection.cursor() and 'ok')")
    assert shell.stdout == "ok\n", shell.stderr
    assert manage(data, "up", PORT=str(free_port())).stderr == (
        f"Another hub (pid {hub.process.pid}) already runs on {data}. Stop it, or set ACCELHUB_DATA_DIR.\n"
    )
    reset = manage(data, "demo_reset")
    assert (reset.returncode, reset.stdout) == (1, "")
    assert f"Another hub (pid {hub.process.pid})" in reset.stderr
    # A master and a service that die come back.
    for words in (("gunicorn",), ("redis-server",), ("postgres", "-D")):
        os.kill(the(hub, *words), signal.SIGKILL)
    for name in ("web", "redis", "postgres"):
        hub.writes(f"{name} ended (killed by SIGKILL); again in 1 s")
    eventually(lambda: is_ready(hub), "web, Redis and PostgreSQL are back")

    tree = hub.tree()
    for words in (("--queues=relay",), ("--queues=heavy",), ("beat",), ("simulate",)):
        assert the(hub, *words)
    hub.process.send_signal(signal.SIGINT)
    assert hub.ends() == 0
    assert living(tree | hub.below()) == {}
    assert "did not stop in time" not in hub.out
    assert hub.err == ""
    assert not list(ROOT.glob("celerybeat-schedule*"))


def test_nothing_survives_a_killed_hub_and_the_next_one_starts(hub: Started, data: Path) -> None:
    tree = hub.tree()
    # gunicorn's and the prefork pool's own children are the ones that such a kill tends to leave.
    assert sum("gunicorn" in command(pid) for pid in tree) == 3
    assert sum("--queues=heavy" in command(pid) for pid in tree) == 2
    hub.process.kill()
    hub.ends()
    eventually(lambda: not living(tree | hub.below()), "all of the hub's processes ended")
    assert manage(data, "migrate", "--check").returncode == 0


def test_demo_reset_leaves_what_is_not_the_hubs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "postgres").mkdir(parents=True)
    (data / "mine.txt").touch()
    assert manage(data, "demo_reset").stdout == f"There is no demo in {data}: nothing removed.\n"
    assert (data / "postgres").exists()
    (data / "demo.json").write_text("{}")
    assert manage(data, "demo_reset").returncode == 0
    assert [path.name for path in data.iterdir()] == ["mine.txt"]


def test_no_demo_overrides_the_environment(data: Path) -> None:
    # Without a demo's secrets the system checks stop the start: proof that demo mode is really off.
    done = manage(data, "up", "--no-demo", ACCELHUB_DEMO="1", PORT=str(free_port()))
    assert done.returncode == 1
    assert "accelhub.E002" in done.stdout
    assert done.stderr == "The step `migrate` failed (exit status 1): its lines above say why.\n"
