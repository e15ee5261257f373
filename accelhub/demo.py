"""What a demo hub knows about its private GitHub: made once per data folder, read by every process of the hub.

`manage.py up` calls `ensure()` under the data folder's lock; settings only `load()`. Outside demo mode nothing
here is ever read.
"""

import base64
import json
import secrets
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from apps.simulator.buildkite import issuers_at
from apps.simulator.oauth import client_of
from apps.simulator.people import MAINTAINERS

FILE = "demo.json"


@dataclass(frozen=True)
class Demo:
    """Secrets and addresses of one demo. `port` is where the stand-in for GitHub listens on loopback."""

    secret_key: str = ""
    app_id: str = ""
    app_private_key: str = ""
    webhook_secret: str = ""
    port: int = 0
    base_url: str = ""  # the hub's own, for docs/reporter-example.sh
    checkpoint_key: str = ""  # 32 bytes in base64: signs checkpoints of the log

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.port}" if self.port else ""

    @property
    def oauth_key(self) -> str:
        return client_of(self.app_id, self.app_private_key)[0] if self.port else ""

    @property
    def oauth_secret(self) -> str:
        return client_of(self.app_id, self.app_private_key)[1] if self.port else ""

    @property
    def maintainer_team(self) -> str:
        return MAINTAINERS if self.port else ""

    @property
    def oidc_issuers(self) -> str:
        """ACCELHUB_OIDC_ISSUERS for this demo, as JSON text."""
        if not self.port:
            return "[]"
        return json.dumps(issuers_at(self.api_url))


NOTHING = Demo()


def load(data_dir: Path) -> Demo:
    """The demo's facts, or NOTHING where `manage.py up` has not made them yet."""
    try:
        return Demo(**json.loads((data_dir / FILE).read_text()))
    except FileNotFoundError:
        return NOTHING


def ensure(data_dir: Path, base_url: str) -> Demo:
    """Make the demo's secrets on first use; pick another port when the remembered one is taken. Call under the lock."""
    known = load(data_dir)
    port = known.port if known.port and _is_free(known.port) else _free_port()
    if known == NOTHING:
        app_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = app_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        known = Demo(secrets.token_urlsafe(48), "1001", pem, secrets.token_urlsafe(32), port)
    # A demo of before it had one gets its key now, and keeps it.
    key = known.checkpoint_key or base64.b64encode(secrets.token_bytes(32)).decode()
    demo = Demo(**(asdict(known) | {"port": port, "base_url": base_url, "checkpoint_key": key}))
    path = data_dir / FILE
    draft = path.with_suffix(".new")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(asdict(demo)))
    draft.replace(path)
    return demo


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
