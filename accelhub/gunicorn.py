"""How gunicorn serves the hub: `gunicorn --config python:accelhub.gunicorn accelhub.wsgi:application`.

ACCELHUB_BIND and PORT say where it listens. Threads, because slow uploads would starve sync workers (ADR 0004).
"""

import os
import signal
from typing import Any

from accelhub.env import env
from accelhub.processes import die_with

# Loopback unless told otherwise: the hub speaks plain HTTP, and a proxy in front of it brings TLS.
host = env.str("ACCELHUB_BIND", "127.0.0.1")
port = env.int("PORT", 8000)

bind = f"{host}:{port}"
worker_class = "gthread"
workers = 2
threads = 8
# The application loads once, before the fork: half the time to the first answer, and less memory. Nothing opens a
# connection while it loads.
preload_app = True
# Longer than a proxy keeps its idle connections, so that it is never the hub that closes one under a request.
keepalive = 75
timeout = 60
graceful_timeout = 8
# Heartbeat files in memory: on a slow disk they make a busy worker look dead.
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
# It would put a control socket into the home folder of whoever starts the hub.
control_socket_disable = True


# SCRIPT_NAME and PATH_INFO are no business of a client's, nor of a proxy that hands on what a client sent.
forwarder_headers = ""
# A body that stops coming lets its thread go. A proxy in front takes bodies in whole (docs/operator.md).
BODY_PAUSE_SECONDS = 10


def pre_request(worker: Any, request: Any) -> None:
    """Before the application reads a request's body."""
    request.unreader.sock.settimeout(BODY_PAUSE_SECONDS)


def post_fork(server: Any, worker: Any) -> None:
    """A worker ends with its master, however that ends: a killed hub leaves nothing behind."""
    die_with(worker.ppid, signal.SIGKILL)
