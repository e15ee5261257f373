"""A small hub for the simulator's own tests, over real HTTP: what it is sent, it checks and keeps."""

import email
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jwt

from apps.core.github import GitHubClient
from apps.simulator.characters import CHARACTERS, Character
from apps.simulator.wire import Answer, Request, Server

APP_ID = "1001"
AUDIENCE = "pytorch-cross-repo-ci-relay"
SECRET = "webhook-secret"
# Those that this hub's listing sends events to.
DISPATCHED = [character for character in CHARACTERS if not character.is_nightly_only]


def eventually(question: Callable[[], Any], seconds: float = 5.0) -> Any:
    """The first true answer to `question`; fails when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
    return answer


class TinyHub:
    """Plays the hub: checks signatures and tokens, dispatches every webhook to every character, keeps all callbacks."""

    def __init__(self, *, github_url: str, app_key: str) -> None:
        self.ready = True
        self.webhooks: list[tuple[str, str, dict[str, Any]]] = []
        self.callbacks: list[tuple[dict[str, Any], dict[str, Any]]] = []  # claims, body
        self.reports: list[tuple[dict[str, Any], dict[str, Any], bytes]] = []  # claims, meta, file
        self.answers: list[int] = []  # statuses to give to the next callbacks instead of 200
        self.retry_after = ""  # goes with these
        self.clocks: list[str] = []  # X-AccelHub-Clock of each callback, '' without
        self.takes_clock = True
        self.attempts = 0
        self.refused: list[tuple[int, dict[str, Any]]] = []  # status, body
        self.repeated: list[dict[str, Any]] = []  # bodies that came again with the token they came with
        self._tokens: dict[str, bytes] = {}  # jti to body
        self._lock = threading.Lock()
        self._client = GitHubClient(api_url=github_url, app_id=APP_ID, private_key=app_key)
        self._jwks = jwt.PyJWKClient(f"{github_url}/.well-known/jwks")
        self._issuer = github_url
        self._background = ThreadPoolExecutor(max_workers=1)
        self._server = Server(0, self._answer)
        self.url = f"http://127.0.0.1:{self._server.port}"

    def stop(self) -> None:
        self._background.shutdown(cancel_futures=True)
        self._server.end()

    def _answer(self, request: Request) -> Answer:
        match request.path:
            case "/readyz":
                return Answer(200 if self.ready else 503, {})
            case "/github/webhook":
                return self._webhook(request)
            case "/github/callback":
                return self._callback(request)
            case "/api/v1/reports/":
                return self._report(request)
        return Answer(404, {})

    def _webhook(self, request: Request) -> Answer:
        expected = "sha256=" + hmac.new(SECRET.encode(), request.body, hashlib.sha256).hexdigest()
        if request.headers["x-hub-signature-256"] != expected:
            return Answer(401, {})
        if "x-accelhub-clock" in request.headers and not self.takes_clock:
            return Answer(400, {"code": "malformed"})
        event, delivery_id = request.headers["x-github-event"], request.headers["x-github-delivery"]
        if delivery_id in {known for _, known, _ in self.webhooks}:
            return Answer(200, {"ok": True, "status": "duplicate"})
        self.webhooks.append((event, delivery_id, request.json()))
        client_payload = {
            "event_type": event,
            "delivery_id": delivery_id,
            "payload": request.json(),
            "accelhub": f"made up for {delivery_id}",
        }
        for character in DISPATCHED:
            self._background.submit(self._dispatch, character, event, client_payload)
        return Answer(202, {"ok": True})

    def _dispatch(self, character: Character, event: str, client_payload: dict[str, Any]) -> None:
        name = character.full_name
        if character.renamed_to:
            name = self._client.repository_identity(name).full_name
        self._client.send_dispatch(name, event_type=event, client_payload=client_payload)

    def _callback(self, request: Request) -> Answer:
        with self._lock:
            self.attempts += 1
            if self.answers:
                wait = {"Retry-After": self.retry_after} if self.retry_after else {}
                return Answer(self.answers.pop(0), {"code": "made_up", "detail": "two\nlines"}, headers=wait)
        claims = self._claims(request)
        with self._lock:
            body, before = json.loads(request.body), self._tokens.get(claims["jti"])
            if before not in (None, request.body):
                return self._refuse(409, body)
            if self.webhooks and body["event_type"] != "nightly" and not self._knows(body["delivery_id"]):
                return self._refuse(403, body)
            self._tokens[claims["jti"]] = request.body
            if before is not None:
                self.repeated.append(body)
                return Answer(200, {"ok": True, "status": "duplicate"})
            self.callbacks.append((claims, body))
            self.clocks.append(request.headers.get("x-accelhub-clock", ""))
        return Answer(200, {"ok": True, "status": "applied"})

    def _report(self, request: Request) -> Answer:
        head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
        whole = email.message_from_bytes(head + request.body)
        meta, file = (bytes(part.get_payload(decode=True)) for part in whole.walk() if not part.is_multipart())
        self.reports.append((self._claims(request), json.loads(meta), file))
        return Answer(202, {"status": "received"})

    def _claims(self, request: Request) -> dict[str, Any]:
        token = request.bearer()
        claims: dict[str, Any] = jwt.decode(
            token,
            self._jwks.get_signing_key_from_jwt(token),
            algorithms=["RS256"],
            audience=AUDIENCE,
            issuer=[self._issuer, f"{self._issuer}/buildkite"],
        )
        return claims

    def _knows(self, delivery_id: str) -> bool:
        return any(known == delivery_id for _, known, _ in self.webhooks)

    def _refuse(self, status: int, body: dict[str, Any]) -> Answer:
        self.refused.append((status, body))
        return Answer(status, {"code": "made_up"})
