"""The environment of a hub that is measured: its own data folder, its own keys, a stand-in as its only issuer."""

import json
import socket
from pathlib import Path

from apps.simulator.oidc import new_key


def of(folder: Path) -> dict[str, str]:
    """Environment variables, set before settings load. Every server they name is on loopback."""
    port = free_port()
    github = f"http://127.0.0.1:{port}"
    issuer = {"issuer": github, "jwks_url": f"{github}/.well-known/jwks", "kind": "github"}
    return {
        "DJANGO_SETTINGS_MODULE": "accelhub.settings",
        "DATABASE_URL": "",
        "REDIS_URL": "",
        "ACCELHUB_DATA_DIR": str(folder),
        # Demo mode only for its issuer on loopback: debug mode would keep every query and measure that.
        "ACCELHUB_DEBUG": "0",
        "ACCELHUB_DEMO": "1",
        "ACCELHUB_SECRET_KEY": "a benchmark's, not a secret",
        "ACCELHUB_GITHUB_API_URL": github,
        "ACCELHUB_GITHUB_APP_ID": "1001",
        "ACCELHUB_GITHUB_APP_PRIVATE_KEY": new_key(),
        "ACCELHUB_GITHUB_WEBHOOK_SECRET": "a benchmark's",
        "ACCELHUB_OIDC_ISSUERS": json.dumps([issuer]),
        "PORT": str(free_port()),
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
