"""Fictional secrets, one for each default pattern; and the client's modules, for tests of what is pure in them."""

import importlib
import sys
from types import ModuleType

from tests.client.recorder import CLIENT

_LETTERS = "Aa0Bb1Cc2Dd3Ee4Ff5Gg6Hh7Ii8Jj9Kk0Ll1Mm2Nn3"
SECRETS = {
    "GitHub token": f"ghs_{_LETTERS[:36]}",
    "GitHub fine-grained token": f"github_pat_{_LETTERS}",
    "JSON web token": f"eyJ{_LETTERS}.eyJ{_LETTERS}.{_LETTERS}",
    "private key": f"-----BEGIN RSA PRIVATE KEY-----\n{_LETTERS}\n-----END RSA PRIVATE KEY-----",
    "AWS access key": "AKIA" + "Q7" * 8,
    "Google API key": f"AIza{_LETTERS[:35]}",
    "Hugging Face token": f"hf_{_LETTERS[:34]}",
    "Buildkite token": f"bkua_{_LETTERS[:40]}",
    "Slack token": "xoxb-1234567890-" + _LETTERS[:12],
    "bearer token": f"Bearer {_LETTERS}",
    "password in an address": "https://me:hunter2@",
}


def client_module(name: str) -> ModuleType:
    """A module of the client, as it lies in this repository."""
    if str(CLIENT) not in sys.path:
        sys.path.append(str(CLIENT))
    return importlib.import_module(f"accelhub_client.{name}")
