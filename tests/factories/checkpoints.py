"""Keys that sign checkpoints, and checkpoints."""

import base64
import datetime
import hashlib
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from apps.audit import checkpoints
from apps.audit.chain import GENESIS, stamp
from apps.audit.checkpoints import Signed

HUB, UPSTREAM = "https://hub.example", "pytorch/pytorch"
WHEN = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.UTC)


def seed(name: str = "a hub") -> str:
    """A key as operators write it, the same for the same name."""
    return base64.b64encode(hashlib.sha256(name.encode()).digest()).decode()


def key(name: str = "a hub") -> Ed25519PrivateKey:
    return checkpoints.read_private_key(seed(name))


def public_key(name: str = "a hub") -> str:
    return checkpoints.public_key_of(key(name))


def signed(name: str = "a hub", **fields: Any) -> Signed:
    """A checkpoint by this hub's key."""
    given = {
        "number": 1,
        "at": stamp(WHEN),
        "hub": HUB,
        "upstream": UPSTREAM,
        "seq": 1,
        "hash": "0" * 64,
        "export_digest": "0" * 64,
        "previous": GENESIS,
    }
    return checkpoints.sign(key(name), **(given | fields))
