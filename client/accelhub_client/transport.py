"""HTTP as far as the client needs it. Whoever answers is not trusted: how long, how much and from where is bounded."""

import base64
import http.client
import json
import socket
import ssl
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Protocol
from urllib.parse import unquote, urljoin, urlsplit

from accelhub_client import VERSION
from accelhub_client.exits import Stop

SOCKET_SECONDS = 60.0  # without a byte in either direction
ANSWER_SECONDS = 120.0  # from the request's last byte to the answer's last
ANSWER_MAX_BYTES = 1 << 20
REDIRECTS_MAX = 3
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_REDIRECTS = (301, 302, 303, 307, 308)


class Unreachable(Exception):
    """Nobody answered, or not to the end."""


class Body(Protocol):
    """What is sent: of known length, in pieces, as often as it is asked for."""

    length: int

    def pieces(self) -> Iterator[bytes]: ...


@dataclass(frozen=True)
class Address:
    """An address that may be asked: https, or http on this machine itself."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    def at(self, path: str) -> "Address":
        """Another path of the same hub: below the one it stands at."""
        return Address(self.scheme, self.host, self.port, self.path.rstrip("/") + path)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


@dataclass(frozen=True)
class Answer:
    """What came back, at most ANSWER_MAX_BYTES of it."""

    status: int
    headers: "http.client.HTTPMessage"
    body: bytes

    def json(self) -> dict[str, Any]:
        """The JSON object that it holds; {} where it holds none."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


def address(url: str, name: str) -> Address:
    """Read an address that is called `name`. Raises Stop `usage` for anything but https, or http on loopback."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Stop("usage", f"{name}: {error}.") from None
    host = parts.hostname or ""
    if not host or parts.scheme not in ("http", "https") or parts.username is not None or not url.isprintable():
        raise Stop("usage", f"{name}: saw {url[:100]!r}, give an address such as https://hub.example.")
    if parts.scheme == "http" and host not in LOOPBACK:
        raise Stop("usage", f"{name}: saw {url[:100]!r}. A token travels by https only.")
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    return Address(parts.scheme, host, port or (443 if parts.scheme == "https" else 80), path)


def get(where: Address, headers: Mapping[str, str]) -> Answer:
    """Ask for something. A redirect is followed within the same origin. Raises Unreachable."""
    start = where
    for _ in range(REDIRECTS_MAX + 1):
        answer = exchange("GET", where, headers)
        if answer.status not in _REDIRECTS:
            return answer
        following = urljoin(str(where), answer.headers.get("Location", ""))
        try:
            where = address(following, "Location")
        except Stop as stop:
            raise Unreachable(f"redirected to nowhere: {stop.message}") from None
        if where.origin != start.origin:
            raise Unreachable(f"redirected to another host, {where.host[:100]}, which is not followed")
    raise Unreachable(f"redirected more than {REDIRECTS_MAX} times")


def exchange(method: str, where: Address, headers: Mapping[str, str], body: Optional[Body] = None) -> Answer:
    """One request and its answer, redirects not followed. Raises Unreachable; Stop `unavailable` for
    a certificate that is not trusted."""
    connection = _connection(where)
    watch = None
    try:
        connection.putrequest(method, where.path or "/")
        connection.putheader("User-Agent", f"accelhub-client/{VERSION}")
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(body.length))
        connection.endheaders()
        _send(connection, body)
        watch = threading.Timer(ANSWER_SECONDS, _cut, [connection.sock])
        watch.daemon = True
        watch.start()
        answer = connection.getresponse()
        read = answer.read(ANSWER_MAX_BYTES + 1)
    except ssl.SSLCertVerificationError as error:
        raise Stop("unavailable", f"{where.host}: its certificate is not trusted: {error.verify_message}.") from None
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__) from None
    finally:
        if watch is not None:
            watch.cancel()
        connection.close()
    if len(read) > ANSWER_MAX_BYTES:
        raise Unreachable(f"the answer has more than {ANSWER_MAX_BYTES} bytes")
    return Answer(answer.status, answer.headers, read)


def _send(connection: http.client.HTTPConnection, body: Optional[Body]) -> None:
    if body is None:
        return
    try:
        for piece in body.pieces():
            connection.send(piece)
    except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
        return  # Who refuses early closes early: the answer may be there already, and says why.


def _cut(sock: socket.socket) -> None:
    """End a connection under the hands of who reads from it. Not by the TLS socket's own method, which is for the one
    who reads."""
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        return  # It has ended by itself.


def _connection(where: Address) -> http.client.HTTPConnection:
    """A connection, by the proxy that the environment names for https; never by one on this machine."""
    if where.scheme == "http":
        return http.client.HTTPConnection(where.host, where.port, timeout=SOCKET_SECONDS)
    proxy = urllib.request.getproxies().get("https")
    if not proxy or urllib.request.proxy_bypass(where.host):
        return http.client.HTTPSConnection(where.host, where.port, timeout=SOCKET_SECONDS)
    parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    headers = {}
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(login).decode()}"
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=SOCKET_SECONDS)
    connection.set_tunnel(where.host, where.port, headers)
    return connection
