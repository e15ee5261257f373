"""Who sends a callback: an OIDC token of the downstream's CI, verified against configured trust anchors only.

Source: docs/protocol.md, "Identity"; RFC 7519, RFC 7517. RS256 only.
"""

import json
import logging
import threading
import time
from functools import lru_cache
from typing import Any

import jwt
import requests
from django.conf import settings

from apps.core.errors import Problem
from apps.relay import buildkite
from apps.relay.claims import OPTIONAL, REQUIRED, UNCHECKED, Claim, Identity, Refused, read_claims, unknown

log = logging.getLogger(__name__)

TOKEN_MAX_BYTES = 16_384
JWKS_MAX_BYTES = 262_144
FETCH_TIMEOUT_SECONDS = 5
KEYS_KEPT_SECONDS = 3_600
# An unknown key id refetches, but no caller can make the hub do so more often than this.
REFETCH_EVERY_SECONDS = 30
CLOCK_SKEW_SECONDS = 10

CLAIMS: tuple[Claim, ...] = (
    Claim("iss", REQUIRED, "is a configured issuer"),
    Claim("aud", REQUIRED, "is the hub's audience"),
    Claim("exp", REQUIRED, f"has not passed, {CLOCK_SKEW_SECONDS} s of clock difference allowed"),
    Claim("iat", REQUIRED, "is not in the future"),
    Claim("nbf", OPTIONAL, "has come, where sent"),
    Claim("repository", REQUIRED, "names the repository; identity is its id", is_kept=True),
    Claim("repository_id", REQUIRED, "is the pinned id", is_id=True, is_kept=True),
    Claim("repository_owner_id", REQUIRED, "is the pinned owner's id", is_id=True, is_kept=True),
    Claim("run_id", REQUIRED, "is the run_id of the body", is_id=True, is_kept=True),
    Claim("run_attempt", REQUIRED, "is the run_attempt of the body", is_id=True, is_kept=True),
    Claim("jti", REQUIRED, "names the token, which speaks for one body only", is_kept=True),
    Claim("sha", OPTIONAL, "kept: the commit of the downstream, not of the pull request", is_kept=True),
    Claim("ref", OPTIONAL, "kept: the default branch for a dispatched run", is_kept=True),
    Claim("workflow_ref", OPTIONAL, "kept: the workflow file that ran", is_kept=True),
    Claim("job_workflow_ref", OPTIONAL, "kept: the reusable workflow that ran", is_kept=True),
    Claim("event_name", OPTIONAL, "kept: repository_dispatch for a dispatched run", is_kept=True),
    Claim("actor", OPTIONAL, "kept: who the run is attributed to", is_kept=True),
    Claim("sub", UNCHECKED, "repeats repository and ref in two spellings; the ids say it better"),
    Claim("repository_owner", UNCHECKED, "a name that can be taken over; the id is checked"),
    Claim("actor_id", UNCHECKED, "who started a run proves nothing about its result"),
    Claim("environment", UNCHECKED, "a setting of the downstream's own"),
    Claim("runner_environment", UNCHECKED, "vendors run on their own machines by design"),
    Claim("repository_visibility", UNCHECKED, "what the level asks of a repository is decided by people"),
    Claim("head_ref", UNCHECKED, "empty for a dispatched run"),
    Claim("base_ref", UNCHECKED, "empty for a dispatched run"),
    Claim("run_number", UNCHECKED, "run_id identifies the run"),
    Claim("ref_type", UNCHECKED, "ref says it"),
    Claim("ref_protected", UNCHECKED, "a setting of the downstream's own"),
    Claim("workflow", UNCHECKED, "a name without a file; workflow_ref has the file"),
    Claim("workflow_sha", UNCHECKED, "the commit of the workflow file; nothing is pinned to it yet"),
    Claim("job_workflow_sha", UNCHECKED, "the commit of the reusable workflow; nothing is pinned to it yet"),
)


class Keys:
    """One issuer's public keys by key id, fetched when needed. Safe for threads; one per process and issuer."""

    def __init__(self, jwks_url: str) -> None:
        self._url = jwks_url
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at: float | None = None
        self._asked_at: float | None = None
        self._lock = threading.Lock()

    def get(self, key_id: str) -> jwt.PyJWK | None:
        """The key of this id; None when the issuer does not have it. Raises Problem `unavailable` when the issuer's
        keys were never to be had."""
        key = self._keys.get(key_id)
        if key is not None and not self._is_older_than(self._fetched_at, KEYS_KEPT_SECONDS):
            return key
        with self._lock:
            if self._is_older_than(self._asked_at, REFETCH_EVERY_SECONDS):
                self._asked_at = time.monotonic()
                self._fetch()
        if self._fetched_at is None:
            raise Problem("unavailable", "The issuer's keys cannot be fetched.", headers={"Retry-After": "30"})
        return self._keys.get(key_id)

    @staticmethod
    def _is_older_than(moment: float | None, seconds: float) -> bool:
        return moment is None or time.monotonic() - moment >= seconds

    def _fetch(self) -> None:
        """Replace the keys; on any failure keep the ones we have."""
        try:
            with requests.get(self._url, timeout=FETCH_TIMEOUT_SECONDS, allow_redirects=False, stream=True) as response:
                if response.status_code != requests.codes.ok:
                    raise ValueError(f"status {response.status_code}")
                raw = response.raw.read(JWKS_MAX_BYTES + 1, decode_content=True)
            if len(raw) > JWKS_MAX_BYTES:
                raise ValueError(f"more than {JWKS_MAX_BYTES} bytes")
            self._keys = _rsa_keys(json.loads(raw))
            self._fetched_at = time.monotonic()
        except (requests.RequestException, OSError, ValueError, jwt.PyJWTError) as error:
            log.error("keys of %s not fetched: %s", self._url, error)


def _rsa_keys(document: Any) -> dict[str, jwt.PyJWK]:
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError("no list of keys")
    usable = (e for e in entries if isinstance(e, dict) and e.get("kty") == "RSA" and e.get("use", "sig") == "sig")
    return {str(entry["kid"]): jwt.PyJWK(entry, algorithm="RS256") for entry in usable if "kid" in entry}


@lru_cache(maxsize=16)
def _keys_of(jwks_url: str) -> Keys:
    return Keys(jwks_url)


def forget_keys() -> None:
    """Drop every cached key: the next token fetches them anew."""
    _keys_of.cache_clear()


def bearer_token(header: str) -> str:
    """The token of an Authorization header. Raises Problem `token_missing` or `token_invalid`."""
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Refused("token_missing", "Authorization: send `Bearer <OIDC token>`.", reason="no bearer token")
    if len(token) > TOKEN_MAX_BYTES:
        raise Refused("token_invalid", f"The token is over {TOKEN_MAX_BYTES} bytes.", reason="token too long")
    return token.strip()


def verify(token: str) -> Identity:
    """Verify a token: issuer, key, signature, audience, times, then the claims by their table.

    Raises Refused (`token_invalid`, `token_expired`, `identity_unknown`), or Problem `unavailable` when the issuer's
    keys cannot be fetched at all.
    """
    try:
        unverified = jwt.decode_complete(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise Refused("token_invalid", "The token is not a JWT.", reason="not a JWT") from None
    header, claimed = unverified["header"], unverified["payload"].get("iss")
    anchor = next((entry for entry in settings.OIDC_ISSUERS if entry["issuer"] == claimed), None)
    if anchor is None:
        raise Refused(
            "token_invalid",
            "iss: this issuer is not one of the hub's. Accepted: "
            + ", ".join(entry["issuer"] for entry in settings.OIDC_ISSUERS)
            + ".",
            "iss",
            reason="unknown issuer",
        )
    issuer = anchor["issuer"]
    if header.get("alg") != "RS256":
        raise Refused("token_invalid", "alg: only RS256 is accepted.", "alg", reason="algorithm", issuer=issuer)
    key_id = header.get("kid")
    key = _keys_of(anchor["jwks_url"]).get(key_id) if isinstance(key_id, str) else None
    if key is None:
        raise Refused("token_invalid", "kid: the issuer has no such key.", "kid", reason="unknown key", issuer=issuer)
    return _READERS[anchor["kind"]](issuer, _decode(token, key, issuer))


def _decode(token: str, key: jwt.PyJWK, issuer: str) -> dict[str, Any]:
    try:
        return jwt.decode(
            token,
            key.key,
            algorithms=["RS256"],
            audience=settings.OIDC_AUDIENCE,
            issuer=issuer,
            leeway=CLOCK_SKEW_SECONDS,
            options={"require": ["exp", "iat", "aud", "iss"]},
        )
    except jwt.ExpiredSignatureError:
        raise Refused(
            "token_expired", "exp: the token's time is over.", "exp", reason="expired", issuer=issuer
        ) from None
    except jwt.InvalidAudienceError:
        raise Refused(
            "token_invalid",
            f"aud: send a token for the audience {settings.OIDC_AUDIENCE}.",
            "aud",
            reason="audience",
            issuer=issuer,
        ) from None
    except jwt.MissingRequiredClaimError as error:
        raise Refused(
            "token_invalid", f"{error.claim}: is missing.", error.claim, reason=f"no {error.claim}", issuer=issuer
        ) from None
    except (jwt.ImmatureSignatureError, jwt.InvalidIssuedAtError):
        raise Refused(
            "token_invalid", "iat, nbf: the token is not valid yet.", "iat", reason="not yet valid", issuer=issuer
        ) from None
    except jwt.InvalidSignatureError:
        raise Refused("token_invalid", "The signature does not hold.", reason="signature", issuer=issuer) from None
    except (jwt.PyJWTError, ValueError, OverflowError, TypeError, RecursionError):
        raise Refused("token_invalid", "The token cannot be read.", reason="unreadable", issuer=issuer) from None


def _of_github(issuer: str, payload: dict[str, Any]) -> Identity:
    claims = read_claims(CLAIMS, issuer, payload)
    if claims["repository"].count("/") != 1 or len(claims["repository"]) > 140:
        raise unknown(issuer, "repository", "is not owner/name")
    return Identity(
        issuer=issuer,
        repository=claims["repository"],
        repository_id=int(claims["repository_id"]),
        owner_id=int(claims["repository_owner_id"]),
        run_id=claims["run_id"].lstrip("0") or "0",
        run_attempt=int(claims["run_attempt"]),
        claims=claims,
    )


# How the payload of a verified token becomes an identity, by the kind of its issuer.
_READERS = {"github": _of_github, "buildkite": buildkite.read}
