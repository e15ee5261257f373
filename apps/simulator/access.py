"""Who may ask the stand-in for what: the App's own JWT, installation tokens, and the request tokens of a CI run."""

import hashlib
import time
from dataclasses import asdict, dataclass
from typing import Any

import jwt

from apps.simulator.directory import Repository
from apps.simulator.oidc import load_key
from apps.simulator.wire import Refusal

INSTALLATION_TOKEN_SECONDS = 3600
RUN_TOKEN_SECONDS = 6 * 3600  # as long as a CI job may run
APP_JWT_SECONDS = 600  # GitHub takes no App JWT that lives longer
CLOCK_DRIFT_SECONDS = 60

# What the App was granted when it was installed.
GRANTED = {"actions": "write", "checks": "write", "contents": "write", "metadata": "read", "pull_requests": "write"}


@dataclass(frozen=True)
class InstallationToken:
    """What an installation token opens. `repository_ids` None: everything the installation reaches."""

    installation_id: int
    permissions: dict[str, str]
    repository_ids: tuple[int, ...] | None

    def reaches(self, repository: Repository) -> bool:
        return (
            repository.installed
            and repository.installation_id == self.installation_id
            and (self.repository_ids is None or repository.id in self.repository_ids)
        )


@dataclass(frozen=True)
class Run:
    """One attempt of one workflow run, on whose behalf OIDC tokens are minted. `ci`: `github` or `buildkite`."""

    repository_id: int
    run_id: str
    run_attempt: int
    workflow: str
    ci: str = "github"


class Access:
    """Checks the App's JWTs; issues and reads the stand-in's own tokens.

    The tokens carry what they open, sealed with a key derived from the App's: a hub that still holds one after the
    stand-in was restarted is served, as GitHub would serve it.
    """

    def __init__(self, app_id: str, app_private_key: str) -> None:
        self.app_id = app_id
        self._app_public_key = load_key(app_private_key).public_key()
        self._seal_key = hashlib.sha256(b"stand-in tokens\n" + app_private_key.encode()).digest()

    def require_app(self, credential: str) -> None:
        """Return if `credential` is a JWT of the App. Raises Refusal 401 otherwise."""
        if not credential:
            raise Refusal(401, "A JSON web token could not be decoded")
        try:
            claims = jwt.decode(
                credential,
                self._app_public_key,
                algorithms=["RS256"],
                leeway=CLOCK_DRIFT_SECONDS,
                # An App's id may stand in `iss` as a number, which PyJWT would not take: compared below.
                options={"require": ["iat", "exp", "iss"], "verify_iss": False, "verify_aud": False},
            )
        except jwt.ExpiredSignatureError as error:
            raise Refusal(
                401,
                "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the "
                "assertion expires",
            ) from error
        except jwt.InvalidTokenError as error:
            raise Refusal(401, "A JSON web token could not be decoded") from error
        if str(claims["iss"]) != self.app_id:
            raise Refusal(401, "'Issuer' claim ('iss') must be the App's id")
        if claims["exp"] > time.time() + APP_JWT_SECONDS + CLOCK_DRIFT_SECONDS:
            raise Refusal(401, "'Expiration time' claim ('exp') is too far in the future")

    def issue_installation_token(self, token: InstallationToken) -> tuple[str, int]:
        """The token's text (`ghs_…`) and its end, in epoch seconds."""
        end = int(time.time()) + INSTALLATION_TOKEN_SECONDS
        sealed = self._seal(
            "installation",
            end,
            installation=token.installation_id,
            permissions=token.permissions,
            repositories=token.repository_ids,
        )
        return f"ghs_{sealed}", end

    def installation_token(self, credential: str) -> InstallationToken | None:
        """What `credential` opens; None without one. Raises Refusal 401 for anything but a live token of ours."""
        if not credential:
            return None
        claims = self._open("installation", credential.removeprefix("ghs_"))
        if claims is None or not credential.startswith("ghs_"):
            raise Refusal(401, "Bad credentials")
        subset = claims["repositories"]
        return InstallationToken(
            claims["installation"], claims["permissions"], None if subset is None else tuple(subset)
        )

    def issue_run_token(self, run: Run) -> str:
        """The request token a CI run gets, to ask for OIDC tokens with."""
        return self._seal("run", int(time.time()) + RUN_TOKEN_SECONDS, **asdict(run))

    def run(self, credential: str) -> Run:
        """The run that a request token belongs to. Raises Refusal 401."""
        claims = self._open("run", credential)
        if claims is None:
            raise Refusal(401, "Bad credentials")
        return Run(claims["repository_id"], claims["run_id"], claims["run_attempt"], claims["workflow"], claims["ci"])

    def _seal(self, kind: str, end: int, **claims: Any) -> str:
        return jwt.encode({"aud": kind, "exp": end} | claims, self._seal_key, algorithm="HS256")

    def _open(self, kind: str, text: str) -> dict[str, Any] | None:
        try:
            return jwt.decode(text, self._seal_key, algorithms=["HS256"], audience=kind, options={"require": ["exp"]})
        except jwt.InvalidTokenError:
            return None
