"""A server that keeps what it is asked and answers as the test says; and the client, run as a CI step runs it."""

import email.parser
import email.policy
import http.server
import io
import json
import os
import ssl
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

CLIENT = Path(__file__).parents[2] / "client"
REPORT_ID = "01970000-aaaa-7bbb-8ccc-0123456789ab"
JUNIT = '<testsuites><testsuite><testcase classname="TestA" name="test_a" time="0.1"/></testsuite></testsuites>'
RUN_SECONDS = 60.0  # against hanging
HOST = "127.0.0.1"


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def parts(self) -> list[tuple[str, str, bytes]]:
        """(field, file name, content) of each part of a multipart body."""
        raw = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode() + self.body
        message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(raw)
        return [
            (
                str(part.get_param("name", header="content-disposition")),
                part.get_filename() or "",
                cast(bytes, part.get_payload(decode=True)),
            )
            for part in message.iter_parts()
        ]

    @property
    def meta(self) -> dict[str, Any]:
        """The upload's `meta`."""
        name, _, content = self.parts[0]
        assert name == "meta"
        found: dict[str, Any] = json.loads(content)
        return found

    @property
    def packed(self) -> dict[str, str]:
        """What is in the upload's reports.zip: text by name."""
        name, file_name, content = self.parts[1]
        assert (name, file_name) == ("file", "reports.zip")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {info: archive.read(info).decode() for info in archive.namelist()}


@dataclass
class Says:
    """One answer. `raw` goes out as it is, instead; with `drip` byte by byte, so many seconds apart."""

    status: int = 202
    body: Any = field(default_factory=lambda: {"id": REPORT_ID, "receipt": "https://hub/r/", "status": "received"})
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    drip: float = 0.0


class Recorder:
    """Answers each request with the next of `answers`, the last one again and again. `asked` are the requests."""

    def __init__(self) -> None:
        self.answers: list[Says] = [Says()]
        self.asked: list[Asked] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                with recorder._lock:
                    recorder.asked.append(Asked(self.command, self.path, headers, body))
                    says = recorder.answers.pop(0) if len(recorder.answers) > 1 else recorder.answers[0]
                recorder._say(self, says)

            do_GET = do_POST = _answer  # noqa: N815 - http.server asks for them

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def wrap(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    @property
    def port(self) -> int:
        return self._server.server_port

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _say(self, handler: http.server.BaseHTTPRequestHandler, says: Says) -> None:
        if says.raw is None:
            content = says.body if isinstance(says.body, bytes) else json.dumps(says.body).encode()
            handler.send_response(says.status)
            for name, value in ({"Content-Length": str(len(content))} | says.headers).items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(content)
            return
        for byte in says.raw if says.drip else b"":
            if self._stopping.wait(says.drip):
                return
            try:
                handler.wfile.write(bytes([byte]))
            except OSError:
                return
        if not says.drip:
            handler.wfile.write(says.raw)


@dataclass(frozen=True)
class Ended:
    """How the client ended, and what it printed."""

    code: int
    out: str
    err: str


Client = Callable[..., Ended]


def client_in(folder: Path, url: str) -> Client:
    """The client as a step that works in `folder`: isolated, without site packages, in an environment of its own."""

    def run(*arguments: str | Path, env: dict[str, str] | None = None, smaller: str = "") -> Ended:
        """`env` replaces or adds variables; `smaller` is Python that makes the client's bounds smaller first."""
        environment = {"PATH": os.environ["PATH"], "ACCELHUB_URL": url, "ACCELHUB_TOKEN": "a.b.c"} | (env or {})
        start = [str(CLIENT)]
        if smaller:
            program = "from accelhub_client import cli, receipts, retries, transport"
            start = [
                "-c",
                f"import sys; sys.path.insert(0, {str(CLIENT)!r}); {program}; {smaller}; sys.exit(cli.main())",
            ]
        ended = subprocess.run(
            [sys.executable, "-I", "-S", "-B", *start, *map(str, arguments)],
            cwd=folder,
            env={name: value for name, value in environment.items() if value},
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    return run
