"""The embedded services: they really start here, under every kind of user and folder that they promise to work in."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from redis import Redis

from accelhub.embedded import (
    EmbeddedError,
    FolderLock,
    Services,
    binaries,
    services,
    services_for_command,
    wanted_services,
)
from accelhub.embedded.folders import make_runtime_folder
from accelhub.env import Paths
from tests.accelhub.process_tree import PATIENCE, descendants, eventually, living

ROOT = Path(__file__).parents[2]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@pytest.fixture(autouse=True)
def embedded_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about servers of our own, whatever the run as a whole uses."""
    for name in ("DATABASE_URL", "REDIS_URL", "DATABASE_URL_FILE", "REDIS_URL_FILE"):
        monkeypatch.delenv(name, raising=False)


def removed(where: Paths) -> None:
    shutil.rmtree(where.data, ignore_errors=True)
    shutil.rmtree(where.runtime, ignore_errors=True)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paths]:
    """One data folder for the tests that only need some: closed to others, and deeper than a socket's path may be."""
    closed = tmp_path_factory.mktemp("closed")
    closed.chmod(0o700)
    where = Paths(closed / ("a folder with blanks/" + "deep/" * 60) / "data")
    yield where
    removed(where)


@pytest.fixture
def where(tmp_path: Path) -> Iterator[Paths]:
    """A data folder that does not exist yet."""
    paths = Paths(tmp_path / "data")
    yield paths
    removed(paths)


def start(paths: Paths) -> Services:
    return Services(paths, wanted_services(paths, durable=False))


def connect(paths: Paths) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(host=str(paths.postgres_socket_dir), user="accelhub", dbname="accelhub", autocommit=True)


def value(paths: Paths, query: str) -> object:
    with connect(paths) as connection:
        row = connection.execute(query.encode()).fetchone()
    return row[0] if row else None


def redis(paths: Paths) -> "Redis":
    return Redis(unix_socket_path=str(paths.redis_socket), decode_responses=True)


def test_rows_survive_a_restart_in_a_deep_closed_folder(shared: Paths) -> None:
    with start(shared):
        with connect(shared) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 'ä' AS word")
        with redis(shared) as client:
            client.set("key", "gone with the server")
    with start(shared):
        assert value(shared, "SELECT word FROM kept") == "ä"
        with redis(shared) as client:
            assert client.get("key") is None


def test_only_the_sockets_lead_in_and_only_for_their_owner(shared: Paths) -> None:
    with start(shared):
        assert value(shared, "SHOW listen_addresses") == ""
        with redis(shared) as client:
            assert client.config_get("port") == {"port": "0"}
            assert client.config_get("save", "appendonly") == {"save": "", "appendonly": "no"}
        for path in (shared.runtime, shared.postgres_socket_dir, shared.redis_socket):
            assert path.stat().st_mode & 0o777 == 0o700, path


def test_the_database_sorts_alike_on_every_machine(shared: Paths) -> None:
    with start(shared):
        row = "SELECT concat_ws(' ', datlocprovider, datlocale, pg_encoding_to_char(encoding)) FROM pg_database "
        assert value(shared, row + "WHERE datname = 'accelhub'") == "b C.UTF-8 UTF8"


def test_a_pid_file_that_a_crashed_machine_left_does_not_prevent_a_start(shared: Paths) -> None:
    with start(shared):
        pass
    # After a reboot the number belongs to some other program: here to this test run.
    (shared.data / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n{shared.data}/postgres\n0\n5432\n\n\n")
    with start(shared):
        assert value(shared, "SELECT 1") == 1


def test_postgresql_variables_of_the_terminal_do_not_reach_the_server(
    shared: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "6543")
    monkeypatch.setenv("PGDATESTYLE", "German")
    with start(shared):
        assert (shared.postgres_socket_dir / ".s.PGSQL.5432").exists()


AS_SOMEONE = """
import os, sys
import psycopg, redis, encodings.idna  # while this user may still read the libraries
from accelhub.embedded import EmbeddedError, FolderLock, Services, wanted_services
from accelhub.env import paths
uid, data = int(sys.argv[1]), sys.argv[2]
if uid != os.geteuid():
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
try:
    with FolderLock(paths()), Services(paths(), wanted_services(paths(), durable=False)):
        database = psycopg.connect(host=str(paths().postgres_socket_dir), user="accelhub", dbname="accelhub")
        database.execute("CREATE TABLE IF NOT EXISTS starts (at timestamptz)")
        database.execute("INSERT INTO starts VALUES (now())")
        print("starts", database.execute("SELECT count(*) FROM starts").fetchone()[0])
        database.commit()
        print("owner", os.stat(paths().data / "postgres").st_uid)
except EmbeddedError as error:
    sys.exit(error.message)
"""


def start_as(uid: int, data: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Start and stop the services in another process, as `uid`. Prints how often that was done on this folder."""
    return subprocess.run(
        [sys.executable, "-c", AS_SOMEONE, str(uid), str(data)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=PATIENCE,
        env=os.environ | {"ACCELHUB_DATA_DIR": str(data)} | environment,
    )


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="accelhub-open-"))
    folder.chmod(0o777)
    yield folder
    for uid in {0, 65534, os.geteuid()}:
        runtime = Paths(folder / "data").runtime.name.replace(f"-{os.geteuid()}-", f"-{uid}-")
        shutil.rmtree(Path("/tmp") / runtime, ignore_errors=True)  # noqa: S108
    shutil.rmtree(folder)


@as_root
def test_an_ordinary_user_starts_them_too(open_folder: Path) -> None:
    done = start_as(65534, open_folder / "data")
    assert done.stdout.split() == ["starts", "1", "owner", "65534"], done.stderr


@as_root
def test_root_starts_them_where_namespaces_are_forbidden_and_moves_on_when_they_are_not(open_folder: Path) -> None:
    without_unshare = {"PATH": "/nowhere"}
    done = start_as(0, open_folder / "data", **without_unshare)
    assert done.stdout.split() == ["starts", "1", "owner", "65534"], done.stderr
    done = start_as(0, open_folder / "data")
    assert done.stdout.split() == ["starts", "2", "owner", "0"], done.stderr
    done = start_as(0, open_folder / "data", **without_unshare)
    assert done.stdout.split() == ["starts", "3", "owner", "65534"], done.stderr


@as_root
def test_root_without_namespaces_in_a_closed_folder_reads_what_to_do(where: Paths) -> None:
    where.data.parent.chmod(0o700)
    done = start_as(0, where.data, PATH="/nowhere")
    assert done.returncode == 1
    assert done.stderr == (
        f"PostgreSQL does not run as root, and no other user can reach {where.data}: start as an ordinary user, set "
        "ACCELHUB_DATA_DIR to a folder below an open one, or set DATABASE_URL.\n"
    )


@as_root
def test_someone_elses_data_folder_is_refused_in_one_line(open_folder: Path) -> None:
    (open_folder / "data").mkdir(mode=0o700)
    done = start_as(65534, open_folder / "data")
    assert done.returncode == 1
    assert done.stderr == (
        f"The folder {open_folder}/data cannot be used (Permission denied): make it writable for this user, "
        "or set ACCELHUB_DATA_DIR to another folder.\n"
    )


def test_a_killed_initdb_leaves_nothing_in_the_way(where: Paths) -> None:
    first = subprocess.Popen(
        [sys.executable, "-c", AS_SOMEONE, str(os.geteuid()), str(where.data)],
        cwd=ROOT,
        env=os.environ | {"ACCELHUB_DATA_DIR": str(where.data)},
    )
    drafts = where.data
    eventually(lambda: any(drafts.glob("postgres.new-*/base")), "initdb began to write")
    below = descendants(first.pid)
    first.kill()
    first.wait()
    assert not (where.data / "postgres").exists()
    eventually(lambda: not living(below), "initdb died with the hub")
    with start(where):
        assert value(where, "SELECT 1") == 1
    assert not list(drafts.glob("postgres.new-*"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"base": ""}, r".*/postgres is not a whole PostgreSQL data folder \(it has no PG_VERSION\): move it away .*"),
        ({"PG_VERSION": "16\n"}, r".*/postgres was made by PostgreSQL 16, this hub brings 18: move the data over .*"),
    ],
)
def test_a_data_folder_of_another_kind_is_refused_in_one_line(
    where: Paths, content: dict[str, str], message: str
) -> None:
    (where.data / "postgres").mkdir(parents=True)
    for name, text in content.items():
        (where.data / "postgres" / name).write_text(text)
    with pytest.raises(EmbeddedError, match=f"^{message}$"):
        start(where).start()


def test_a_server_that_cannot_start_is_told_with_its_own_last_line(shared: Paths) -> None:
    with start(shared):
        pass
    configuration = shared.data / "postgres" / "postgresql.conf"
    sound = configuration.read_text()
    configuration.write_text(sound + "\nno_such_setting = 1\n")
    try:
        with pytest.raises(EmbeddedError, match=r"^The embedded postgres does not start \(FATAL: .*\): see .*log\.$"):
            start(shared).start()
    finally:
        configuration.write_text(sound)


def test_servers_end_when_their_hub_is_killed(shared: Paths) -> None:
    script = (
        "import sys, time; from accelhub.embedded import *; from accelhub.env import paths; "
        "Services(paths(), wanted_services(paths(), durable=False)).start(); print('up', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env=os.environ | {"ACCELHUB_DATA_DIR": str(shared.data)},
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"up\n"
        below = descendants(holder.pid)
        assert len(below) > 2
        holder.send_signal(signal.SIGKILL)
    # The next hub need not wait for that: it does so itself.
    with start(shared):
        assert value(shared, "SELECT 1") == 1
    eventually(lambda: not living(below), "the killed hub's servers ended")


def test_a_data_folder_has_one_holder(where: Paths) -> None:
    with FolderLock(where):
        with pytest.raises(EmbeddedError) as caught:
            FolderLock(where).acquire()
        assert caught.value.message == (
            f"Another hub (pid {os.getpid()}) already runs on {where.data}. Stop it, or set ACCELHUB_DATA_DIR."
        )
    with FolderLock(where):
        pass


def test_a_lock_on_a_removed_file_guards_nothing(where: Paths) -> None:
    with FolderLock(where):
        shutil.rmtree(where.data)
        with FolderLock(where):
            assert not FolderLock(where).try_acquire()


def test_a_runtime_folder_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "link").symlink_to(elsewhere)
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "file").touch()
    for name in ("link", "dangling", "file"):
        with pytest.raises(EmbeddedError, match=rf"/{name} is not a folder: remove it, or set ACCELHUB_DATA_DIR"):
            make_runtime_folder(tmp_path / name)


@as_root
def test_a_runtime_folder_of_someone_else_is_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    os.chown(foreign, 65534, 65534)
    with pytest.raises(EmbeddedError, match="belongs to uid 65534: remove it"):
        make_runtime_folder(foreign)


def test_an_open_runtime_folder_of_ours_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "runtime"
    folder.mkdir()
    folder.chmod(0o777)
    make_runtime_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


class TestServicesForCommand:
    @pytest.fixture(autouse=True)
    def data_folder(self, monkeypatch: pytest.MonkeyPatch, shared: Paths) -> None:
        monkeypatch.setenv("ACCELHUB_DATA_DIR", str(shared.data))

    def test_a_command_has_services_for_as_long_as_it_runs(self, shared: Paths) -> None:
        with services_for_command(["manage.py", "migrate"]):
            assert value(shared, "SELECT 1") == 1
            with redis(shared) as client:
                assert client.ping()
        with pytest.raises(psycopg.OperationalError):
            connect(shared)

    def test_services_stop_when_the_command_fails(self, shared: Paths) -> None:
        with pytest.raises(ZeroDivisionError), services_for_command(["manage.py", "shell"]):
            raise ZeroDivisionError
        with FolderLock(shared), pytest.raises(psycopg.OperationalError):
            connect(shared)

    def test_a_command_beside_a_running_hub_uses_its_services(self, shared: Paths) -> None:
        started_at = "SELECT pg_postmaster_start_time()"
        with FolderLock(shared), start(shared):
            before = value(shared, started_at)
            with services_for_command(["manage.py", "migrate"]):
                assert value(shared, started_at) == before
            assert value(shared, started_at) == before

    def test_a_hub_whose_services_stay_silent_is_told_in_one_line(
        self, shared: Paths, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(services, "READY_SECONDS", 0.0)
        with (
            FolderLock(shared),
            pytest.raises(SystemExit, match=rf"^A hub \(pid {os.getpid()}\) holds .* postgres and redis does not"),
            services_for_command(["manage.py", "migrate"]),
        ):
            pytest.fail("the command ran without services")

    @pytest.mark.parametrize(
        "words",
        [
            *([], ["check"], ["up"], ["makemigrations", "--check"], ["help"], ["migrate", "--help"]),
            *(["audit", "verify", "--export", "x"], ["audit", "verify", "--export=x", "--checkpoint", "y"]),
        ],
    )
    def test_commands_without_data_start_nothing(
        self, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ACCELHUB_DATA_DIR", str(tmp_path / "untouched"))
        with services_for_command(["manage.py", *words]):
            assert not (tmp_path / "untouched").exists()

    def test_servers_named_by_url_are_left_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ACCELHUB_DATA_DIR", str(tmp_path / "untouched"))
        monkeypatch.setenv("DATABASE_URL", "postgres://db.invalid/hub")
        monkeypatch.setenv("REDIS_URL", "redis://redis.invalid")
        with services_for_command(["manage.py", "migrate"]):
            assert not (tmp_path / "untouched").exists()

    def test_each_is_embedded_by_itself(self, monkeypatch: pytest.MonkeyPatch, shared: Paths) -> None:
        monkeypatch.setenv("DATABASE_URL", "postgres://db.invalid/hub")
        assert [service.name for service in wanted_services(shared)] == ["redis"]
        monkeypatch.delenv("DATABASE_URL")
        monkeypatch.setenv("REDIS_URL", "redis://redis.invalid")
        assert [service.name for service in wanted_services(shared)] == ["postgres"]

    def test_a_failure_is_one_line_and_exit_status_1(self, tmp_path: Path) -> None:
        (tmp_path / "postgres").mkdir()
        (tmp_path / "postgres" / "base").touch()
        done = subprocess.run(
            [sys.executable, "manage.py", "migrate"],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env=os.environ | {"ACCELHUB_DATA_DIR": str(tmp_path)},
        )
        shutil.rmtree(Paths(tmp_path).runtime)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert "it has no PG_VERSION" in done.stderr


def test_missing_programs_are_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    for locate, variable in ((binaries.postgres_bin, "DATABASE_URL"), (binaries.redis_server, "REDIS_URL")):
        locate.cache_clear()
        with pytest.raises(EmbeddedError, match=rf"install requirements\.txt.*set {variable}\.$"):
            locate()


def test_a_redis_server_of_the_host_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "redis-server").write_text("#!/bin/sh\n")
    (tmp_path / "redis-server").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    binaries.redis_server.cache_clear()
    assert binaries.redis_server() == str(tmp_path / "redis-server")
    binaries.redis_server.cache_clear()
