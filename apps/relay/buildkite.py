"""Buildkite's OIDC tokens. They name a pipeline, never a repository: a mapping of the hub's own says whose it is.

Source: Buildkite's documentation of `buildkite-agent oidc request-token`; docs/protocol.md, "Identity".
"""

from typing import Any
from uuid import UUID

from apps.platforms.policy import PIPELINE_CLAIMS
from apps.relay.claims import (
    OPTIONAL,
    REQUIRED,
    UNCHECKED,
    Claim,
    Identity,
    Pipeline,
    Refused,
    read_claims,
)

_REQUIRABLE = "kept; the pipeline's mapping may require a value"
CLAIMS: tuple[Claim, ...] = (
    Claim("iss", REQUIRED, "is a configured issuer"),
    Claim("aud", REQUIRED, "is the hub's audience"),
    Claim("exp", REQUIRED, "has not passed"),
    Claim("iat", REQUIRED, "is not in the future"),
    Claim("nbf", OPTIONAL, "has come, where sent"),
    Claim("organization_id", REQUIRED, "is a mapped pipeline's; ask for it with --claim", is_kept=True, is_uuid=True),
    Claim("pipeline_id", REQUIRED, "is a mapped pipeline's; ask for it with --claim", is_kept=True, is_uuid=True),
    Claim("build_number", REQUIRED, "is the run_id of the body", is_kept=True, is_number=True),
    Claim("jti", REQUIRED, "names the token, which speaks for one body only", is_kept=True),
    Claim("organization_slug", REQUIRED, "kept as a name; identity is the id", is_kept=True),
    Claim("pipeline_slug", REQUIRED, "kept as a name; identity is the id", is_kept=True),
    Claim("job_id", REQUIRED, "kept: which job of the build", is_kept=True, is_uuid=True),
    Claim("build_branch", OPTIONAL, f"{_REQUIRABLE}: builds of forks get tokens too", is_kept=True),
    Claim("build_tag", OPTIONAL, _REQUIRABLE, is_kept=True),
    Claim("build_source", OPTIONAL, _REQUIRABLE, is_kept=True),
    Claim("step_key", OPTIONAL, _REQUIRABLE, is_kept=True),
    Claim("build_commit", OPTIONAL, "kept: the commit of the downstream, not of the pull request", is_kept=True),
    Claim("sub", UNCHECKED, "repeats slugs, ref, commit and step; the ids say it better"),
    Claim("agent_id", UNCHECKED, "vendors run on their own machines by design"),
    Claim("runner_environment", UNCHECKED, "vendors run on their own machines by design"),
)

SLUG_MAX = 69  # two of them and a slash fit where a repository's name does


def read(issuer: str, payload: dict[str, Any]) -> Identity:
    """The identity of a verified payload. Raises Refused `identity_unknown`.

    `run_attempt` is None: Buildkite counts attempts per job, and its tokens do not say them.
    """
    claims = read_claims(CLAIMS, issuer, payload)
    return Identity(
        issuer=issuer,
        repository=f"{claims['organization_slug'][:SLUG_MAX]}/{claims['pipeline_slug'][:SLUG_MAX]}",
        repository_id=None,
        owner_id=None,
        run_id=claims["build_number"],
        run_attempt=None,
        claims=claims,
        pipeline=Pipeline(UUID(claims["organization_id"]), UUID(claims["pipeline_id"])),
    )


def refuse_unmapped(identity: Identity) -> Refused:
    """The refusal of a pipeline that stands for no repository."""
    pipeline_id, organization_id = identity.numbers
    return Refused(
        "identity_unknown",
        f"organization_id, pipeline_id: no repository is mapped to pipeline {pipeline_id} of organisation "
        f"{organization_id}. Ask the hub's operators to map it.",
        "pipeline_id",
        reason="pipeline not mapped",
        issuer=identity.issuer,
    )


def require(identity: Identity, wanted: dict[str, list[str]]) -> None:
    """Hold a token against what its pipeline's mapping requires: each claim has one of its values.

    Raises Refused `identity_unknown`.
    """
    for name in PIPELINE_CLAIMS:
        said = identity.claims.get(name)
        if name in wanted and said not in wanted[name]:
            seen = "nothing" if said is None else repr(said[:60])
            raise Refused(
                "identity_unknown",
                f"{name}: this pipeline speaks for its repository with {' or '.join(wanted[name])}, the token says "
                f"{seen}. Report from such a build, or ask the hub's operators to change the mapping.",
                name,
                reason=f"claim {name}",
                issuer=identity.issuer,
            )
