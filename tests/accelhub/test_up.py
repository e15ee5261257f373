"""`manage.py up` for real: PostgreSQL, Redis, gunicorn, Celery and the demo's simulator, as `make demo` starts them."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from django.core.management import call_command
from pytest_django import Settings

from accelhub.embedded import FolderLock
from accelhub.env import Paths
from accelhub.management.commands import up as up_command
from accelhub.management.commands.demo_reset import ours
from tests.accelhub.process_tree import command, eventually, living
from tests.accelhub.started import ROOT, Started, free_port
from tests.environment import without_ours


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One data folder for the demo's starts. A real hub's lies beside it."""
    folder = tmp_path_factory.mktemp("up") / "data"
    yield folder
    for used in folder.parent.iterdir():
        shutil.rmtree(Paths(used).runtime, ignore_errors=True)


@contextlib.contextmanager
def up(data: Path, **environment: str) -> Iterator[Started]:
    """A hub that answers. Whatever happens, it is gone afterwards."""
    hub = Started(["manage.py", "up"], data, **environment)
    try:
        hub.writes("Stop it with Ctrl-C.")
        yield hub
    finally:
        hub.close()


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


def test_a_demo_lives_and_ends_without_a_trace(data: Path) -> None:
    with up(data, ACCELHUB_DEMO="1", ACCELHUB_DEMO_HISTORY_DAYS="0") as hub:
        assert is_ready(hub)
        for word in (f"AccelHub runs at http://127.0.0.1:{hub.port}", "demo-maintainer", "demo-operator"):
            assert word in hub.out
        # Its services serve other commands, and no second hub gets at them.
        shell = manage(data, "shell", "-v0", "-c", "from django.db import connection as c; print(c.cursor() and 'ok')")
        assert shell.stdout == "ok\n", shell.stderr
        assert manage(data, "up", PORT=str(free_port()), ACCELHUB_DEBUG="1").stderr == (
            f"Another hub (pid {hub.process.pid}) already runs on {data}. Stop it, or set ACCELHUB_DATA_DIR.\n"
        )
        # A program and services that die come back.
        for words in (("gunicorn",), ("redis-server",), ("postgres", "-D")):
            os.kill(the(hub, *words), signal.SIGKILL)
        for name in ("web", "redis", "postgres"):
            hub.writes(f"{name} ended (killed by SIGKILL); again in 1 s")
        eventually(lambda: is_ready(hub), "web, Redis and PostgreSQL are back")

        for words in (("--queues=relay",), ("--queues=heavy",), ("beat",), ("simulate",)):
            assert the(hub, *words)
        tree = hub.tree()
        hub.process.send_signal(signal.SIGINT)
        assert hub.ends() == 0
        assert living(tree | hub.below()) == {}
        assert "did not stop in time" not in hub.out
        assert hub.err == ""
        assert set(data.iterdir()) == set(ours(data)), "make demo-reset would leave something"


def test_nothing_survives_a_killed_hub_and_the_folder_is_free_again(data: Path) -> None:
    data = data.parent / "real"
    with up(data, ACCELHUB_DEBUG="1") as hub:
        assert "Sign in" not in hub.out
        assert "simulate" not in hub.out
        # gunicorn's and the prefork pool's own children are the ones that such a kill tends to leave.
        eventually(lambda: sum("--queues=heavy" in command(pid) for pid in hub.tree()) == 2, "the pool has its process")
        tree = hub.tree()
        assert sum("gunicorn" in command(pid) for pid in tree) == 3
        hub.process.kill()
        hub.ends()
        eventually(lambda: not living(tree | hub.below()), "all of the hub's processes ended")
    assert manage(data, "migrate", "--check", ACCELHUB_DEBUG="1").returncode == 0


@pytest.mark.parametrize(("is_new", "days", "is_told"), [(True, 30, True), (False, 30, False), (True, 0, False)])
def test_a_new_demo_says_that_its_history_is_being_filled_in(
    settings: Settings, is_new: bool, days: int, is_told: bool
) -> None:
    settings.DEMO_HISTORY_DAYS = days
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    text = up_command.banner("http://127.0.0.1:8000", with_demo=True, is_new=is_new)
    assert ("30 days of history are being filled in: figures grow for some minutes." in text) is is_told
    for word in ("demo-newcomer", "demo-admin", f"E-mails are files in {settings.EMAIL_FILE_PATH}."):
        assert word in text


class TestNoDemo:
    @pytest.mark.parametrize(("words", "expected"), [([], True), (["--no-demo"], False)])
    def test_it_overrides_the_environment(
        self, words: list[str], expected: bool, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.DEMO = True
        asked: list[bool] = []

        class Recorder:
            def __init__(self, *_arguments: object, with_demo: bool, **_options: object) -> None:
                asked.append(with_demo)

            def run(self) -> None:
                pass

        monkeypatch.setattr(up_command, "Supervisor", Recorder)
        call_command("up", *words)
        assert asked == [expected]


class TestDemoReset:
    @pytest.fixture
    def data(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        folder = tmp_path / "data"
        (folder / "postgres").mkdir(parents=True)
        (folder / "mine.txt").touch()
        monkeypatch.setenv("ACCELHUB_DATA_DIR", str(folder))
        return folder

    def test_it_touches_nothing_of_a_real_hub(self, data: Path) -> None:
        (data / "demo.json").write_text("{}")
        (data / "kind").write_text("real\n")
        with pytest.raises(SystemExit) as refused:
            call_command("demo_reset")
        assert refused.value.code == (
            f"The data folder {data} is kept by a real hub: nothing removed. "
            "Set ACCELHUB_DATA_DIR to the folder of a demo."
        )
        assert {path.name for path in data.iterdir()} == {"postgres", "mine.txt", "demo.json", "kind"}

    def test_it_removes_the_hubs_files_and_no_others(self, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (data / "demo.json").write_text("{}")
        call_command("demo_reset")
        assert [path.name for path in data.iterdir()] == ["mine.txt"]
        assert f"The demo's data in {data} are removed" in capsys.readouterr().out

    def test_it_touches_nothing_where_no_demo_ran(self, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (data / "postgres").rmdir()
        call_command("demo_reset")
        assert capsys.readouterr().out == f"There is no demo in {data}: nothing removed.\n"
        assert [path.name for path in data.iterdir()] == ["mine.txt"]

    def test_it_refuses_while_a_hub_runs(self, data: Path) -> None:
        (data / "demo.json").write_text("{}")
        with FolderLock(Paths(data)), pytest.raises(SystemExit, match=rf"^Another hub \(pid {os.getpid()}\)"):
            call_command("demo_reset")
        assert (data / "postgres").exists()
