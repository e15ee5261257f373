"""The keys a stand-in signs OIDC tokens with, and what an issuer publishes about them."""

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey, generate_private_key
from jwt.algorithms import RSAAlgorithm

# What GitHub's issuer lists as claims_supported, as far as the stand-in fills them.
CLAIMS = [
    "sub", "aud", "exp", "iat", "iss", "jti", "nbf", "ref", "ref_type", "repository", "repository_id",
    "repository_owner", "repository_owner_id", "repository_visibility", "run_id", "run_number", "run_attempt",
    "sha", "workflow", "workflow_ref", "workflow_sha", "job_workflow_ref", "job_workflow_sha", "event_name",
    "actor", "actor_id", "head_ref", "base_ref", "runner_environment",
]  # fmt: skip


def new_key() -> str:
    """A fresh RSA private key as PEM text."""
    key = generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def kept_key(path: Path) -> str:
    """The PEM private key in the file `path`, made there (mode 0600) on first use.

    A stand-in that comes back with the same key leaves no gap in which a hub has yet to fetch the new one.
    """
    try:
        return path.read_text()
    except FileNotFoundError:
        pem = new_key()
        draft = path.with_name(f"{path.name}.{os.getpid()}.new")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(pem)
        draft.replace(path)  # whole or not at all, whenever the process dies
        return pem


def load_key(pem: str) -> RSAPrivateKey:
    """PEM text as a key. Raises ValueError where it is no RSA private key."""
    # Checking the numbers takes a tenth of a second at every start, and finds fault only with keys made by an enemy.
    key = serialization.load_pem_private_key(pem.encode(), password=None, unsafe_skip_rsa_key_validation=True)
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("not an RSA private key")
    return key


class SigningKeys:
    """The issuer's current private key and every public key it still publishes, newest first."""

    def __init__(self, pem: str) -> None:
        self._key = load_key(pem)
        self._published = [_jwk(self._key.public_key())]

    @property
    def kid(self) -> str:
        """The id of the key that signs now."""
        return str(self._published[0]["kid"])

    def rotate(self, *, keep_old: bool) -> str:
        """Sign with a new key from now on, publishing the old ones only if `keep_old`. Returns the new key's id."""
        self._key = load_key(new_key())
        self._published = [_jwk(self._key.public_key()), *(self._published if keep_old else [])]
        return self.kid

    def sign(self, claims: dict[str, Any]) -> str:
        """The claims as a compact RS256 JWT."""
        return jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": self.kid, "x5t": self.kid})

    def jwks(self) -> dict[str, Any]:
        """The published keys as a JSON Web Key Set."""
        return {"keys": list(self._published)}


def _jwk(key: RSAPublicKey) -> dict[str, Any]:
    jwk = RSAAlgorithm.to_jwk(key, as_dict=True)
    # The thumbprint of RFC 7638 as the id: the same key has the same id after a restart.
    canonical = json.dumps({part: jwk[part] for part in ("e", "kty", "n")}, separators=(",", ":"))
    kid = base64.urlsafe_b64encode(hashlib.sha256(canonical.encode()).digest()).rstrip(b"=").decode()
    return {"kty": jwk["kty"], "alg": "RS256", "use": "sig", "kid": kid, "n": jwk["n"], "e": jwk["e"]}
