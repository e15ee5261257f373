"""The dashboard that stood there before: takes posts, over HTTP, and can be told to refuse."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from apps.simulator.wire import HOST, Answer, Request, Server


@dataclass
class Dashboard:
    """`answers` are the statuses of the next posts (0: no answer), 200 after that."""

    url: str = ""
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def answer(self, request: Request) -> Answer:
        self.bodies.append(request.body)
        self.keys.append(request.headers.get("x-hud-internal-bot", ""))
        status, headers = self.answers.pop(0) if self.answers else (200, {})
        return Answer(status, {}, headers=headers)


@contextmanager
def running() -> Iterator[Dashboard]:
    dashboard = Dashboard()
    server = Server(0, dashboard.answer)
    dashboard.url = f"http://{HOST}:{server.port}/api/crcr/results"
    try:
        yield dashboard
    finally:
        server.end()
