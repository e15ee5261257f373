"""A hub that is measured: its stand-in GitHub, its repositories, its programs."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests
from django.conf import settings

from accelhub import celery_app, processes
from accelhub.env import BASE_DIR
from accelhub.programs import Program, programs

READY_SECONDS = 60


def standin(*, keep: int = 10) -> Any:
    """The stand-in that the settings point at, not started yet. `keep`: how many dispatches it remembers."""
    from apps.simulator.standin import GitHubStandIn

    port = int(settings.GITHUB_API_URL.rsplit(":", 1)[1])
    return GitHubStandIn(
        app_id=settings.GITHUB_APP_ID, app_private_key=settings.GITHUB_APP_PRIVATE_KEY, port=port, keep=keep
    )


def list_repositories(github: Any, count: int) -> list[str]:
    """List `count` repositories at L2, and no others: on the hub, pinned, and on the stand-in. Returns their names."""
    from apps.audit.services import command_actor
    from apps.core.clock import now
    from apps.platforms.allowlist import parse
    from apps.platforms.models import Repository
    from apps.platforms.services import import_allowlist

    names = [f"bench-{number}/torch" for number in range(count)]
    text = "L2:\n" + "".join(f"- {name}\n" for name in names)
    import_allowlist(allowlist=parse(text), source="bench", sha256="0" * 64, actor=command_actor("bench"), now=now())
    for repository in Repository.objects.filter(full_name__in=names):
        ids = github.add_repository(repository.full_name)
        repository.github_id, repository.github_owner_id = ids.repository_id, ids.owner_id
        repository.pin_source, repository.pinned_at = Repository.PinSource.GITHUB_API, now()
        repository.save()
    return names


def receive(delivery_id: str) -> None:
    """A pull request's webhook, as the door hands it on."""
    import json

    from apps.core.clock import now
    from apps.relay.services import receive_delivery

    body = {
        "action": "opened",
        "number": 1,
        "repository": {"full_name": settings.UPSTREAM_REPO},
        "pull_request": {
            "number": 1,
            "title": "A change",
            "head": {"sha": "0" * 40, "ref": "change"},
            "base": {"ref": "main"},
            "body": "x" * 20_000,
        },
    }
    receive_delivery(delivery_id=delivery_id, event="pull_request", body=body, raw=json.dumps(body), now=now())


def start(program: Program) -> "subprocess.Popen[bytes]":
    """Start a program of the hub; what it writes goes to `<name>.log` in the data folder."""
    with (Path(settings.DATA_DIR) / f"{program.name}.log").open("ab") as log:
        return processes.spawn(program.argv, cwd=BASE_DIR, env=dict(os.environ), stdout=log, stderr=log)


def program(name: str) -> Program:
    """A row of the table that `manage.py up` reads."""
    return next(one for one in programs(Path(settings.DATA_DIR)) if one.name == name)


@contextlib.contextmanager
def running(*names: str) -> Iterator[None]:
    """The programs of a hub with these names, as `manage.py up` starts them, until the end of the block."""
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.callback(processes.stop, start(program(name)), signal.SIGTERM, program(name).stop_seconds)
        until_ready(names)
        yield


def until_ready(names: tuple[str, ...]) -> None:
    """Wait until the web server answers, or, without one, a worker does. Raises RuntimeError where neither comes."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        try:
            if "web" not in names:
                # Nobody waits for it here: a worker that has answered a ping is at work.
                if celery_app.control.ping(timeout=0.5, limit=1):
                    return
            elif requests.get(f"http://127.0.0.1:{settings.PORT}/readyz", timeout=5).ok:
                return
        except requests.ConnectionError:
            time.sleep(0.1)
    raise RuntimeError(f"{', '.join(names)} did not start, see the logs in {settings.DATA_DIR}")
