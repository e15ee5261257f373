"""https: with a certificate that is trusted, through a proxy, and refused where it is not trusted."""

import datetime
import http.server
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.client.recorder import HOST, REPORT_ID, Client, Recorder, Says, client_in

UPLOAD = ("report", "upload", "test-reports", "--run-id", "7", "--job-name", "build")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost that signs itself, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "localhost.pem"
    own = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + own)
    return file


@pytest.fixture
def hub_over_tls(certificate: Path) -> Iterator[Recorder]:
    made = Recorder()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    made.wrap(context)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def cli(step: Path, hub_over_tls: Recorder) -> Client:
    return client_in(step, f"https://localhost:{hub_over_tls.port}")


@pytest.fixture
def proxy() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """A proxy's address with a login, and what it was asked: (where to, login)."""
    asked: list[tuple[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            asked.append((self.path, self.headers.get("Proxy-Authorization", "")))
            host, _, port = self.path.rpartition(":")
            with socket.create_connection((host, int(port)), timeout=10) as there:
                self.send_response(200)
                self.end_headers()
                pair = {self.connection: there, there: self.connection}
                while True:
                    for ready in select.select(list(pair), [], [], 10)[0]:
                        piece = ready.recv(65_536)
                        if not piece:
                            return
                        pair[ready].sendall(piece)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://me:p%40w@{HOST}:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_upload_over_tls(cli: Client, hub_over_tls: Recorder, certificate: Path) -> None:
    hub_over_tls.answers = [Says(503, {}), Says()]
    ended = cli(*UPLOAD, env={"SSL_CERT_FILE": str(certificate)})
    assert (ended.code, ended.out.splitlines()[0]) == (0, f"received: {REPORT_ID}"), ended.err
    assert len(hub_over_tls.asked) == 2


def test_an_upload_through_the_proxy_of_the_environment(
    cli: Client, hub_over_tls: Recorder, certificate: Path, proxy: tuple[str, list[tuple[str, str]]]
) -> None:
    url, asked = proxy
    ended = cli(*UPLOAD, env={"SSL_CERT_FILE": str(certificate), "HTTPS_PROXY": url})
    assert ended.code == 0, ended.err
    assert asked == [(f"localhost:{hub_over_tls.port}", "Basic bWU6cEB3")]
    assert "p@w" not in ended.err


def test_a_certificate_that_is_not_trusted_ends_it_at_once(cli: Client, hub_over_tls: Recorder) -> None:
    ended = cli(*UPLOAD)
    assert (ended.code, hub_over_tls.asked) == (5, [])
    assert ended.err.endswith("accelhub: localhost: its certificate is not trusted: self-signed certificate.\n")
