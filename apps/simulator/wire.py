"""The HTTP/1.1 server under a stand-in: requests in, JSON answers out, and an end to every thread.

Loopback only. It knows nothing of GitHub: one function given to it answers every request.
"""

import contextlib
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
LARGEST_BODY = 1_048_576  # bytes
IDLE_SECONDS = 60  # a kept-alive connection without a request is closed after this long
NO_ANSWER = 0  # as a status: close the connection without a word


class Refusal(Exception):
    """An answer of 4xx or 5xx; with the status NO_ANSWER none at all."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True)
class Request:
    """One request, its body read. `path` is without the query; header names are lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON; None where it is empty. Raises Refusal 400."""
        if not self.body:
            return None
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise Refusal(400, "Problems parsing JSON") from error

    def bearer(self) -> str:
        """The credential in `Authorization: Bearer …` or `token …`; empty without one."""
        scheme, _, credential = self.headers.get("authorization", "").partition(" ")
        return credential.strip() if scheme.lower() in {"bearer", "token"} else ""


@dataclass(frozen=True)
class Answer:
    """What goes back: `data` as JSON, or a page as `html`, or nothing. `after` runs once the answer is on the wire."""

    status: int
    data: Any = None
    html: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    after: Callable[[], None] | None = None


class Server(ThreadingHTTPServer):
    """Serves `answer` on 127.0.0.1 with one daemon thread per connection, until `end()`."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, port: int, answer: Callable[[Request], Answer]) -> None:
        """Bind `port` (0: any free one) and listen. Raises OSError where the port is taken."""
        self.answer = answer
        self._open: set[socket.socket] = set()
        self._changed = threading.Condition()
        super().__init__((HOST, port), _Handler)
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.05}, name="standin", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def end(self, seconds: float = 1.0) -> None:
        """Stop accepting, close every connection, and wait up to `seconds` for their threads."""
        self.shutdown()
        self._thread.join()
        self.server_close()
        deadline = time.monotonic() + seconds
        with self._changed:
            for connection in self._open:
                with contextlib.suppress(OSError):  # the other side was faster
                    connection.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits for the next request
            while self._open and time.monotonic() < deadline:
                self._changed.wait(deadline - time.monotonic())

    def track(self, connection: socket.socket, *, is_open: bool) -> None:
        with self._changed:
            (self._open.add if is_open else self._open.discard)(connection)
            self._changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "AccelHubStandIn"
    sys_version = ""
    timeout = IDLE_SECONDS
    wbufsize = -1  # head and body leave in one packet
    disable_nagle_algorithm = True
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.track(self.connection, is_open=True)

    def finish(self) -> None:
        with contextlib.suppress(OSError):  # the client left, or end() closed the connection
            super().finish()
        self.server.track(self.connection, is_open=False)

    def handle(self) -> None:
        with contextlib.suppress(OSError):  # as in finish()
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)

    def _serve(self) -> None:
        answer = self._answer()
        if answer.status == NO_ANSWER:
            self.close_connection = True
            if answer.after is not None:
                answer.after()
            return
        body = answer.html.encode() if answer.data is None else json.dumps(answer.data).encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if body:
            kind = "text/html" if answer.data is None else "application/json"
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
        if answer.status != 204:
            self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()
        if answer.after is not None:
            answer.after()

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _answer(self) -> Answer:
        try:
            body = self._body()
            # A page in a browser must not reach the demo's secrets by pointing its own name at loopback.
            if urlsplit(f"//{self.headers.get('Host', '')}").hostname not in {HOST, "localhost", None}:
                raise Refusal(403, "Only for loopback")
            url = urlsplit(self.path)
            return self.server.answer(
                Request(
                    method=self.command,
                    path=url.path,
                    query=dict(parse_qsl(url.query)),
                    headers={name.lower(): value for name, value in self.headers.items()},
                    body=body,
                )
            )
        except Refusal as refusal:
            return Answer(refusal.status, {"message": refusal.message, "status": str(refusal.status)})
        except Exception:
            log.exception("The stand-in failed on %s %s", self.command, self.path)
            return Answer(500, {"message": "Server Error", "status": "500"})

    def _body(self) -> bytes:
        if "Transfer-Encoding" in self.headers:
            self.close_connection = True
            raise Refusal(411, "Length Required")
        length = self.headers.get("Content-Length", "0")
        if not re.fullmatch(r"\d{1,12}", length):
            self.close_connection = True
            raise Refusal(400, "Bad Content-Length")
        if int(length) > LARGEST_BODY:
            self.close_connection = True
            raise Refusal(413, "Payload Too Large")
        return self.rfile.read(int(length))
