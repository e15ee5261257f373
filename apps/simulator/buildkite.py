"""Buildkite's side of the stand-in: its own issuer, and the claims of a `buildkite-agent oidc request-token`."""

import hashlib
import time
import uuid
from typing import Any

from apps.simulator.directory import Repository

# The issuer's path below the stand-in's address: another issuer than GitHub's, with the same keys.
PATH = "/buildkite"
OIDC_SECONDS = 300
_NAMES = uuid.UUID("5a6e1f0c-0b57-4b7e-9f3c-6a1d2e3f4a5b")


def organization_id(repository_owner_id: int) -> uuid.UUID:
    """The organisation that a fictional owner has at Buildkite: the same at every start."""
    return uuid.uuid5(_NAMES, f"organization {repository_owner_id}")


def pipeline_id(repository_id: int) -> uuid.UUID:
    """The pipeline that builds a fictional repository."""
    return uuid.uuid5(_NAMES, f"pipeline {repository_id}")


def oidc_claims(repository: Repository, *, issuer: str, audience: str, build_number: int, step: str) -> dict[str, Any]:
    """The claims of a job of a build of main, with both that an agent must ask for (`--claim`)."""
    now = int(time.time())
    commit = hashlib.sha256(f"head of {repository.id}".encode()).hexdigest()[:40]
    return {
        "iss": issuer,
        "sub": f"organization:{repository.owner}:pipeline:{repository.name}:ref:refs/heads/main:commit:{commit}"
        f":step:{step}",
        "aud": audience or f"https://buildkite.com/{repository.owner}",
        "iat": now,
        "nbf": now,
        "exp": now + OIDC_SECONDS,
        "jti": str(uuid.uuid4()),
        "organization_slug": repository.owner,
        "organization_id": str(organization_id(repository.owner_id)),
        "pipeline_slug": repository.name,
        "pipeline_id": str(pipeline_id(repository.id)),
        "build_number": build_number,
        "build_branch": "main",
        "build_tag": None,
        "build_commit": commit,
        "build_source": "api",
        "step_key": step,
        "job_id": str(uuid.uuid4()),
        "agent_id": str(uuid.uuid4()),
        "runner_environment": "self-hosted",
    }


def issuers_at(url: str) -> list[dict[str, str]]:
    """The issuers of a stand-in that listens at `url`."""
    return [
        {"issuer": issuer, "jwks_url": f"{issuer}/.well-known/jwks", "kind": kind}
        for issuer, kind in ((url, "github"), (url + PATH, "buildkite"))
    ]
