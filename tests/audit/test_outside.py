"""Checkpoints in an outside git repository: real git against real bare repositories, by path and over HTTP."""

import base64
import datetime
import http.server
import logging
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from apps.accounts.policy import Role
from apps.audit import outside, publishing
from apps.audit.models import Checkpoint, CheckpointPush
from apps.audit.outside import GitError, scheme_of
from apps.audit.tasks import push_checkpoints
from tests.factories.checkpoints import WHEN, seed
from tests.factories.events import event
from tests.factories.listing import user
from tests.factories.pages import Page

pytestmark = pytest.mark.django_db
MINUTE = datetime.timedelta(minutes=1)
TOKEN = "ghs_a-token-that-nobody-may-read"


def git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """An empty bare repository."""
    path = tmp_path / "outside.git"
    git("init", "--quiet", "--bare", "--initial-branch=main", str(path))
    return path


@pytest.fixture
def pushing(bare: Path, settings: Settings) -> Settings:
    settings.CHECKPOINT_KEY, settings.CHECKPOINT_GIT, settings.CHECKPOINT_GIT_TOKEN = seed(), str(bare), ""
    return settings


def checkpoint() -> Checkpoint:
    event()
    return publishing.make(now=WHEN)


def stands(bare: Path) -> dict[str, str]:
    """The files of the newest commit, by path."""
    names = git("-C", str(bare), "ls-tree", "-r", "--name-only", "HEAD").split()
    return {name: git("-C", str(bare), "show", f"HEAD:{name}") for name in names}


def log_of(bare: Path) -> list[str]:
    return git("-C", str(bare), "log", "--format=%an: %s").splitlines()


def pushed(now: datetime.datetime = WHEN) -> tuple[int, str]:
    row = publishing.push(now=now)
    assert row is not None
    return row.number, row.error


def test_every_checkpoint_stands_there_after_one_push(pushing: Settings, bare: Path) -> None:
    one, two = checkpoint(), checkpoint()
    assert pushed() == (2, "")
    files = {"checkpoints/checkpoint-000001.json": one.file, "checkpoints/checkpoint-000002.json": two.file}
    assert (stands(bare), log_of(bare)) == (files, ["AccelHub: checkpoint 2, to event 2"])
    assert push_checkpoints() == "nothing to push"

    three = checkpoint()
    assert push_checkpoints() == f"{bare}: to checkpoint 3"
    assert stands(bare) == files | {"checkpoints/checkpoint-000003.json": three.file}
    assert log_of(bare) == ["AccelHub: checkpoint 3, to event 3", "AccelHub: checkpoint 2, to event 2"]


def test_what_stands_there_already_is_no_new_commit(pushing: Settings, bare: Path) -> None:
    checkpoint()
    pushed()
    CheckpointPush.objects.all().delete()  # the hub was set up anew, or was pointed here again
    assert pushed() == (1, "")
    assert len(log_of(bare)) == 1


def test_nothing_to_do_is_nothing_done(pushing: Settings, bare: Path) -> None:
    assert publishing.push(now=WHEN) is None
    pushing.CHECKPOINT_GIT = ""
    checkpoint()
    assert publishing.push(now=WHEN) is None
    assert not CheckpointPush.objects.exists()


def test_what_others_keep_there_stays(pushing: Settings, bare: Path, tmp_path: Path) -> None:
    work = tmp_path / "theirs"
    git("clone", "--quiet", str(bare), str(work))
    (work / "README").write_text("theirs")
    (work / ".gitignore").write_text("*.json\n")
    git("-C", str(work), "add", ".")
    git("-C", str(work), "-c", "user.name=They", "-c", "user.email=t@example.org", "commit", "--quiet", "-m", "Mine")
    git("-C", str(work), "push", "--quiet", "origin", "HEAD")
    made = checkpoint()
    assert pushed() == (1, "")
    assert stands(bare) == {
        ".gitignore": "*.json\n",
        "README": "theirs",
        "checkpoints/checkpoint-000001.json": made.file,
    }


def test_another_hubs_checkpoint_is_not_written_over(pushing: Settings, bare: Path) -> None:
    checkpoint()
    said = "the repository holds another checkpoints/checkpoint-000001.json than this hub: give each hub one of its own"
    outside.publish(str(bare), {"checkpoint-000001.json": "another hub's"}, token="", message="x")
    assert pushed() == (0, said)
    assert stands(bare) == {"checkpoints/checkpoint-000001.json": "another hub's"}


def test_a_link_in_the_repository_leads_nowhere(pushing: Settings, bare: Path, tmp_path: Path) -> None:
    work, prey = tmp_path / "theirs", tmp_path / "prey"
    prey.mkdir()
    git("clone", "--quiet", str(bare), str(work))
    (work / "checkpoints").symlink_to(prey)
    git("-C", str(work), "add", ".")
    git("-C", str(work), "-c", "user.name=Eve", "-c", "user.email=e@example.org", "commit", "--quiet", "-m", "Evil")
    git("-C", str(work), "push", "--quiet", "origin", "HEAD")
    checkpoint()
    assert pushed() == (0, "the repository has a file checkpoints, where the folder of that name belongs")
    assert list(prey.iterdir()) == []


def test_a_failure_is_said_and_tried_again_and_the_last_success_is_kept(
    pushing: Settings, bare: Path, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint()
    pushed()
    away = bare.rename(bare.with_name("away.git"))
    checkpoint()
    row = publishing.push(now=WHEN + MINUTE)
    assert row is not None
    assert (row.number, row.pushed_at, row.attempts, row.state) == (1, WHEN, 1, "pending")
    assert row.error.startswith("git clone: ")
    assert "does not" in row.error
    assert WHEN + MINUTE <= row.next_attempt_at <= WHEN + 2 * MINUTE
    ((_, level, message),) = caplog.record_tuples
    assert (level, message) == (logging.ERROR, f"checkpoints are not at {bare}: {row.error}")
    client.force_login(user(Role.OPERATOR))
    said = Page(client.get("/staff/health/")).facts["log"]["Outside repository"]
    assert said.startswith("■ push failed to #1, ")
    assert said.endswith(row.error)

    CheckpointPush.objects.update(next_attempt_at=WHEN + 5 * MINUTE)
    assert publishing.push(now=WHEN + 4 * MINUTE) is None  # not due
    away.rename(bare)
    assert pushed(now=WHEN + 5 * MINUTE) == (2, "")
    assert len(stands(bare)) == 2


def test_it_is_never_given_up(pushing: Settings) -> None:
    pushing.CHECKPOINT_GIT = "/nowhere/at-all.git"
    checkpoint()
    moment = WHEN
    for attempt in range(1, 12):
        row = publishing.push(now=moment)
        assert row is not None
        assert (row.attempts, row.state) == (attempt, "pending")
        assert moment <= row.next_attempt_at <= moment + 61 * MINUTE
        moment = row.next_attempt_at


def test_a_worker_that_died_while_pushing_is_replaced(pushing: Settings, bare: Path) -> None:
    checkpoint()
    pushed()
    CheckpointPush.objects.update(state="sending", number=0, changed_at=WHEN)
    assert publishing.push(now=WHEN + MINUTE) is None
    assert pushed(now=WHEN + 11 * MINUTE) == (1, "")


def test_another_address_begins_anew(pushing: Settings, bare: Path, tmp_path: Path) -> None:
    checkpoint()
    pushed()
    second = tmp_path / "second.git"
    git("init", "--quiet", "--bare", str(second))
    pushing.CHECKPOINT_GIT = f"file://{second}"
    assert pushed() == (1, "")
    assert list(CheckpointPush.objects.order_by("pk").values_list("address", "number")) == [
        (str(bare), 1),
        (f"file://{second}", 1),
    ]


def test_git_that_hangs_is_ended_with_its_helpers(
    pushing: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 600\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(outside, "COMMAND_SECONDS", 2)
    with pytest.raises(GitError, match="git clone took longer than 2 seconds"):
        outside.publish("git@host.invalid:a.git", {}, token="", message="x")
    helper = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 20
    while is_running(helper):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """Whether the process is there and is no zombie that waits for its parent."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_without_git_it_says_what_to_do(pushing: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    checkpoint()
    assert pushed() == (0, "git cannot be run (No such file or directory): install it where the workers run")


# --- over HTTP, with a token ------------------------------------------------------------------------------------


class Backend(http.server.BaseHTTPRequestHandler):
    """Git's own CGI behind a server that asks for the token."""

    folder: Path
    asked: list[str | None]

    def _answer(self) -> None:
        self.asked.append(self.headers.get("Authorization"))
        wanted = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {wanted}":
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "hub",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _answer  # noqa: N815  http.server asks for these names

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def served(bare: Path) -> Iterator[str]:
    """The bare repository's address over HTTP."""
    Backend.folder, Backend.asked = bare.parent, []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Backend)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{bare.name}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_token_opens_the_repository_and_stands_nowhere(pushing: Settings, bare: Path, served: str) -> None:
    made = checkpoint()
    pushing.CHECKPOINT_GIT, pushing.CHECKPOINT_GIT_TOKEN = served, TOKEN
    assert pushed() == (1, "")
    assert stands(bare) == {"checkpoints/checkpoint-000001.json": made.file}
    assert TOKEN not in (bare / "config").read_text()


def test_a_wrong_token_is_a_failure_that_does_not_repeat_it(
    pushing: Settings, served: str, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint()
    pushing.CHECKPOINT_GIT, pushing.CHECKPOINT_GIT_TOKEN = served, "wrong-token"
    number, error = pushed()
    assert number == 0
    assert error.startswith("git clone: ")
    secret = base64.b64encode(b"x-access-token:wrong-token").decode()
    assert Backend.asked[-1] == f"Basic {secret}"
    assert not [word for word in ("wrong-token", secret) if word in error + caplog.text]


@pytest.mark.parametrize(
    ("address", "scheme"),
    [
        ("https://git.example/hub/log.git", "https"),
        ("http://127.0.0.1:3000/log.git", "http"),
        ("ssh://git@git.example:2222/log.git", "ssh"),
        ("git@git.example:hub/log.git", "ssh"),
        ("/srv/git/log.git", "file"),
        ("file:///srv/git/log.git", "file"),
    ],
)
def test_these_are_addresses(address: str, scheme: str) -> None:
    assert scheme_of(address) == scheme


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("log.git", "is no address that checkpoints are pushed to"),
        ("--upload-pack=touch /tmp/x", "cannot be an address"),
        ("-oProxyCommand=x@host:y", "is no address that checkpoints are pushed to"),
        ("ssh://-oProxyCommand=x/y", "is no address that checkpoints are pushed to"),
        ("ext::sh -c x", "cannot be an address"),
        ("ext::sh", "is no address that checkpoints are pushed to"),
        ("file://host/log.git", "is no address that checkpoints are pushed to"),
        ("https://x:secret@git.example/log.git", "holds a user or password"),
        ("https://secret@git.example/log.git", "holds a user or password"),
        ("ssh://git:secret@git.example/log.git", "holds a user or password"),
        ("/srv/\u202egit", "cannot be an address"),
        ("/" + "a" * 500, "cannot be an address"),
    ],
)
def test_these_are_none(address: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        scheme_of(address)
    assert "secret" not in str(caught.value)
