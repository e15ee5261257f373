"""A checkpoint: the head of the log at one moment, signed. Whoever keeps one can prove later, without the hub, that
nothing was rewritten or cut off since. Pure: keys and texts come in, texts and findings go out.

The text is canonical JSON like a body of the log, the signature Ed25519 over its UTF-8. Each text names the SHA-256 of
the one before, so checkpoints are a chain of their own. The format is fixed, as that of the log is (docs/adr/0003).
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from apps.audit.chain import GENESIS, canonical

FORMAT = "accelhub-checkpoint/1"
KEY_ID_LENGTH = 16
_PEM = "-----BEGIN"


class CheckpointError(Exception):
    """Why a checkpoint cannot be made, read or believed: a sentence without its full stop."""


@dataclass(frozen=True)
class Signed:
    """One checkpoint as it is handed out: what its text says, the text itself, and the signature over it (base64).

    `hash` is that of event `seq`; `export_digest` covers every line of the public export up to it; `previous` is the
    SHA-256 of the text of the checkpoint before, 64 zeros for the first; `public_key` is 32 bytes in base64.
    """

    number: int
    at: str
    hub: str
    upstream: str
    seq: int
    hash: str
    export_digest: str
    previous: str
    public_key: str
    text: str
    signature: str

    @property
    def key_id(self) -> str:
        return key_id(self.public_key)

    @property
    def digest(self) -> str:
        """What the next checkpoint names as `previous`."""
        return hashlib.sha256(self.text.encode()).hexdigest()


# What the text holds besides its format, by the type of each.
_FIELDS: dict[str, type] = {
    "number": int,
    "at": str,
    "hub": str,
    "upstream": str,
    "seq": int,
    "hash": str,
    "export_digest": str,
    "previous": str,
    "public_key": str,
}


# --- keys -------------------------------------------------------------------------------------------------------


def read_private_key(text: str) -> Ed25519PrivateKey:
    """The signing key from PEM text, or from its 32 bytes in base64. Raises CheckpointError, which repeats nothing."""
    try:
        if text.strip().startswith(_PEM):
            key = serialization.load_pem_private_key(text.strip().encode(), password=None)
        else:
            key = Ed25519PrivateKey.from_private_bytes(_bytes(text))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CheckpointError("is neither an Ed25519 key in PEM nor 32 bytes in base64") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise CheckpointError("is a key of another kind than Ed25519")
    return key


def read_public_key(text: str) -> str:
    """A public key as base64 of its 32 bytes, from that or from PEM text. Raises CheckpointError."""
    try:
        if not text.strip().startswith(_PEM):
            return base64.b64encode(_bytes(text)).decode()
        key = serialization.load_pem_public_key(text.strip().encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CheckpointError("is neither a public key in PEM nor 32 bytes in base64") from None
    if not isinstance(key, Ed25519PublicKey):
        raise CheckpointError("is a key of another kind than Ed25519")
    return base64.b64encode(key.public_bytes_raw()).decode()


def public_key_of(key: Ed25519PrivateKey) -> str:
    """The public half, base64 of its 32 bytes."""
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def key_id(public_key: str) -> str:
    """A short name of a public key: the beginning of the SHA-256 of its 32 bytes, hex."""
    return hashlib.sha256(base64.b64decode(public_key)).hexdigest()[:KEY_ID_LENGTH]


def _bytes(text: str) -> bytes:
    """32 bytes from base64. Raises ValueError."""
    raw = base64.b64decode(text.strip().encode("ascii"), validate=True)
    if len(raw) != 32:
        raise ValueError(f"{len(raw)} bytes")
    return raw


# --- texts ------------------------------------------------------------------------------------------------------


def sign(key: Ed25519PrivateKey, **fields: Any) -> Signed:
    """A new checkpoint; `fields` are those of its text but for the key."""
    told = fields | {"public_key": public_key_of(key)}
    text = canonical(told | {"format": FORMAT})
    return Signed(**told, text=text, signature=base64.b64encode(key.sign(text.encode())).decode())


def file_of(text: str, signature: str) -> str:
    """A checkpoint as a file that somebody keeps: one line of JSON."""
    return canonical({"text": text, "signature": signature}) + "\n"


def read_file(content: str) -> Signed:
    """A kept checkpoint, its signature proved by the key that it names. Raises CheckpointError.

    Whatever else stands beside `text` and `signature` is left out: a row of the API is read as well.
    """
    try:
        kept = json.loads(content)
        text, signature = kept["text"], kept["signature"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CheckpointError("is no checkpoint: it has no `text` and `signature`") from None
    return read(text, signature)


def read(text: Any, signature: Any) -> Signed:
    """A checkpoint from its two parts, its signature proved by the key that it names. Raises CheckpointError."""
    try:
        told = json.loads(text)
        if told.pop("format") != FORMAT or {name: type(value) for name, value in told.items()} != _FIELDS:
            raise ValueError
        key = Ed25519PublicKey.from_public_bytes(_bytes(told["public_key"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CheckpointError(f"is no checkpoint of the format {FORMAT}") from None
    try:
        key.verify(base64.b64decode(signature, validate=True), text.encode())
    except (InvalidSignature, ValueError, TypeError, binascii.Error):
        raise CheckpointError("was changed: its signature does not fit its text") from None
    return Signed(**told, text=text, signature=signature)


def fault_of_series(checkpoints: Iterable[Signed]) -> str:
    """What is wrong between checkpoints in the order of their numbers, wherever two neighbours are there; or ''."""
    before: Signed | None = None
    for each in checkpoints:
        expected = GENESIS if each.number == 1 else before.digest if before and before.number == each.number - 1 else ""
        if expected and each.previous != expected:
            return f"checkpoint {each.number} does not follow checkpoint {each.number - 1}: its `previous` is another"
        if before and each.seq < before.seq:
            return f"checkpoint {each.number} ends at event {each.seq}, before checkpoint {before.number} does"
        before = each
    return ""
