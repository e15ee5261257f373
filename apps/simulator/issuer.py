"""A stand-in's issuers of OIDC tokens, GitHub Actions' and Buildkite's: what they publish, and what they sign."""

from collections.abc import Callable
from typing import Any

from apps.simulator import buildkite, shapes
from apps.simulator.directory import Repository
from apps.simulator.oidc import CLAIMS, SigningKeys


class Issuer:
    """Signs for repositories with the keys that it publishes."""

    def __init__(self, keys: SigningKeys, url: Callable[[], str]) -> None:
        """`url` gives the stand-in's base URL, which is known only once it listens."""
        self._keys = keys
        self._url = url

    def jwks(self) -> dict[str, Any]:
        """The published keys."""
        return self._keys.jwks()

    def configuration(self) -> dict[str, Any]:
        """What `/.well-known/openid-configuration` says."""
        return {
            "issuer": self._url(),
            "jwks_uri": f"{self._url()}/.well-known/jwks",
            "subject_types_supported": ["public", "pairwise"],
            "response_types_supported": ["id_token"],
            "claims_supported": CLAIMS,
            "id_token_signing_alg_values_supported": ["RS256"],
            "scopes_supported": ["openid"],
        }

    def mint(
        self,
        repository: Repository,
        *,
        audience: str,
        run_id: str,
        run_attempt: int,
        workflow: str,
        overrides: dict[str, Any] | None = None,
    ) -> str:
        """A signed OIDC token. `overrides` replace claims; None leaves a claim out."""
        claims = shapes.oidc_claims(
            repository,
            issuer=self._url(),
            audience=audience,
            run_id=run_id,
            run_attempt=run_attempt,
            workflow=workflow,
        )
        return self._keys.sign({k: v for k, v in (claims | (overrides or {})).items() if v is not None})

    def mint_buildkite(
        self, repository: Repository, *, audience: str, build_number: int, step: str, overrides: dict[str, Any]
    ) -> str:
        """A token of the stand-in's Buildkite. `overrides` replace claims; None leaves a claim out."""
        issuer = self._url() + buildkite.PATH
        claims = buildkite.oidc_claims(
            repository, issuer=issuer, audience=audience, build_number=build_number, step=step
        )
        return self._keys.sign({k: v for k, v in (claims | overrides).items() if v is not None})
