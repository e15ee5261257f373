"""The environment that tests run in: set before Django's settings load, which read it once.

Nothing of the developer's own configuration reaches a test, except DATABASE_URL and REDIS_URL (each also as
`…_FILE`): they name the servers to use. Where they are unset, the run brings up its own PostgreSQL and Redis on a
temporary folder.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

KEPT = {name + suffix for name in ("DATABASE_URL", "REDIS_URL") for suffix in ("", "_FILE")}
OURS = ("ACCELHUB_", "SOCIAL_AUTH_", "DJANGO_", "DATABASE_URL", "REDIS_URL", "EMAIL_URL", "PORT")


def without_ours(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which nothing configures the hub."""
    return {name: value for name, value in environment.items() if not name.startswith(OURS)}


def prepare() -> Path:
    """Replace the hub's variables in os.environ by the tests' own. Returns the temporary data folder."""
    for name in set(os.environ) - set(without_ours(os.environ)) - KEPT:
        del os.environ[name]
    data = Path(tempfile.mkdtemp(prefix="accelhub-tests-")).resolve()
    # WhiteNoise warns about a missing folder, and warnings are errors here.
    (data / "static").mkdir()
    os.environ.update(
        {
            "DJANGO_SETTINGS_MODULE": "accelhub.settings",
            "ACCELHUB_DATA_DIR": str(data),
            # Lets subprocesses trust an http issuer on loopback. pytest-django sets DEBUG to False in this process.
            "ACCELHUB_DEBUG": "1",
            # Nothing listens there: a test that asks GitHub brings its own stand-in.
            "ACCELHUB_GITHUB_API_URL": "http://127.0.0.1:9",
            "ACCELHUB_SECRET_KEY": "tests only: not a secret, but long enough",
            "ACCELHUB_GITHUB_WEBHOOK_SECRET": "tests-webhook-secret",
            "ACCELHUB_GITHUB_APP_ID": "1001",
            "ACCELHUB_GITHUB_APP_PRIVATE_KEY": private_key(),
        }
    )
    return data


def private_key() -> str:
    """A new RSA key in PEM, as a GitHub App has one."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
