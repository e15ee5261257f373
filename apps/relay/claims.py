"""What the claims of a verified token mean: rows of a table, read in one way whoever issued them."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.core.errors import Problem

REQUIRED, OPTIONAL, UNCHECKED = "required", "optional", "unchecked"

_DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_INT64 = 9_223_372_036_854_775_807
_TEXT_MAX = 1_000


@dataclass(frozen=True)
class Claim:
    """One row: what the hub does with a claim, and why.

    `is_id`: decimal digits as text; `is_number`: a whole number; `is_uuid`: a UUID in lower case.
    """

    name: str
    use: str
    check: str
    is_id: bool = False
    is_kept: bool = False
    is_number: bool = False
    is_uuid: bool = False


@dataclass(frozen=True)
class Pipeline:
    """A Buildkite pipeline by the numbers that no rename changes."""

    organization_id: UUID
    pipeline_id: UUID


@dataclass(frozen=True)
class Identity:
    """A verified caller. `claims` are those that its issuer's table keeps, as text.

    GitHub's tokens name a repository and its ids. Buildkite's name a pipeline: then `repository` is what Buildkite
    calls it, the ids are None, and so is the attempt, which its tokens do not carry.
    """

    issuer: str
    repository: str
    repository_id: int | None
    owner_id: int | None
    run_id: str
    run_attempt: int | None
    claims: dict[str, str]
    pipeline: Pipeline | None = None

    @property
    def token_id(self) -> UUID:
        """The token's own id: its issuer and jti as one, 128 bits of SHA-256."""
        return UUID(bytes=hashlib.sha256(f"{self.issuer}\n{self.claims['jti']}".encode()).digest()[:16])

    @property
    def numbers(self) -> tuple[str, str]:
        """What it is whatever it is called, and whose, as text: repository and owner, or pipeline and organisation."""
        if self.pipeline is not None:
            return str(self.pipeline.pipeline_id), str(self.pipeline.organization_id)
        return str(self.repository_id), str(self.owner_id)


@dataclass
class Refused(Problem):
    """A refusal of a token. `reason` is one of a fixed set of words, safe to count by; `issuer` is a configured one."""

    reason: str = ""
    issuer: str = ""


def read_claims(table: Iterable[Claim], issuer: str, payload: dict[str, Any]) -> dict[str, str]:
    """The claims that the table keeps, as text. Raises Refused `identity_unknown` that names the claim that does not
    fit."""
    claims = {}
    for row in table:
        value = payload.get(row.name)
        if row.use is REQUIRED and value in (None, ""):
            raise unknown(issuer, row.name, "is missing")
        if row.is_id and not (isinstance(value, str) and _DIGITS.fullmatch(value) and int(value) <= _INT64):
            raise unknown(issuer, row.name, "is not a numeric id as text")
        if row.is_number:
            if type(value) is not int or not 0 <= value <= _INT64:
                raise unknown(issuer, row.name, "is not a whole number")
            value = str(value)
        if row.is_uuid and not (isinstance(value, str) and _UUID.fullmatch(value)):
            raise unknown(issuer, row.name, "is not a UUID")
        if not row.is_kept or not value:
            continue
        if not isinstance(value, str) or len(value) > _TEXT_MAX or not value.isprintable():
            raise unknown(issuer, row.name, f"is not plain text of at most {_TEXT_MAX} characters")
        claims[row.name] = value
    return claims


def unknown(issuer: str, claim: str, what: str) -> Refused:
    """The refusal of a token for one of its claims."""
    return Refused("identity_unknown", f"{claim}: {what} in the token.", claim, reason=f"claim {claim}", issuer=issuer)
