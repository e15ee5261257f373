"""Who this job is: an OIDC token of its CI. A new one for each request; none is printed or given to another program."""

import re
import subprocess
from collections.abc import Callable
from typing import Optional
from urllib.parse import quote

from accelhub_client.ci import Environment, is_buildkite
from accelhub_client.console import clean
from accelhub_client.exits import Stop
from accelhub_client.retries import retried
from accelhub_client.transport import Answer, address, exchange

AUDIENCE = "pytorch-cross-repo-ci-relay"
_AGENT_SECONDS = 60
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,16384}", re.ASCII)

Tokens = Callable[[], str]


def tokens(environment: Environment, audience: str, given: Optional[str]) -> Tokens:
    """What gives a token whenever it is asked: the given one, GitHub Actions, or Buildkite's agent.

    Raises Stop `no_token` where there is none of them; asking raises it too.
    """
    if given:
        return lambda: _checked(given, "ACCELHUB_TOKEN")
    url, key = environment.get("ACTIONS_ID_TOKEN_REQUEST_URL"), environment.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
    if url and key:
        return lambda: _of_github(url, key, audience)
    if is_buildkite(environment):
        return lambda: _of_buildkite(audience)
    raise Stop(
        "no_token",
        "No OIDC token. On GitHub Actions give the job `permissions: id-token: write`; on Buildkite run this in a job.",
    )


def _of_github(url: str, key: str, audience: str) -> str:
    where = address(
        f"{url}{'&' if '?' in url else '?'}audience={quote(audience, safe='')}", "ACTIONS_ID_TOKEN_REQUEST_URL"
    )
    headers = {
        "Authorization": f"bearer {_checked(key, 'ACTIONS_ID_TOKEN_REQUEST_TOKEN')}",
        "Accept": "application/json",
    }

    def read(answer: Answer) -> str:
        if answer.status != 200:
            raise Stop("no_token", f"GitHub gives no OIDC token: HTTP {answer.status}.")
        return _checked(answer.json().get("value"), "GitHub's OIDC token")

    return retried("GitHub's OIDC token", lambda: exchange("GET", where, headers), read)


def _of_buildkite(audience: str) -> str:
    command = ["buildkite-agent", "oidc", "request-token", "--audience", audience]
    command += ["--claim", "organization_id,pipeline_id"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_AGENT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise Stop("no_token", f"buildkite-agent gives no OIDC token: {clean(error)}.") from None
    if ended.returncode:
        raise Stop("no_token", f"buildkite-agent gives no OIDC token: {clean(ended.stderr)}")
    return _checked(ended.stdout.strip(), "buildkite-agent's OIDC token")


def _checked(said: object, name: str) -> str:
    """A token that may stand in a header. What it is instead is not shown."""
    if not isinstance(said, str) or not _TOKEN.fullmatch(said):
        raise Stop("no_token", f"{name}: is no token: empty, too long, or with characters that no token has.")
    return said
